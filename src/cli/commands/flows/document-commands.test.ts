import { describe, expect, it } from 'vitest';
import { shell } from '../../../../test/harness/cli/shell.ts';

const bad = `flow: a
steps:
- tsk: x
- {if: g.a, then: []}
---
flow: b
steps: [{cancel: nowhere}]
`;

describe('millrace flow', () => {
  it('validate names every fault with its place, and exits with 1.', async () => {
    const ran = await shell(['flow', 'validate', '-'], { stdin: bad });
    expect(ran).toMatchObject({
      code: 1,
      stdout: [
        'stdin#1:steps[0]: has no verb; did you mean task?',
        'stdin#1:steps[1].if: names the unknown variable g, near "g.a"',
        '',
      ].join('\n'),
    });
    expect(ran.stderr).toContain('warning: stdin#2:steps[0]: names the tag nowhere, which no step has');
  });

  it('validate accepts the examples, and answers in JSON.', async () => {
    const ran = await shell(['flow', 'validate', '--json', 'examples/flows'], { cwd: process.cwd() });
    expect(ran.code).toBe(0);
    expect(JSON.parse(ran.stdout)).toMatchObject({ ok: true, faults: [] });
    expect(ran.stdout).toContain('morning-digest');
  });

  it('schema prints a JSON Schema.', async () => {
    const ran = await shell(['flow', 'schema']);
    expect(JSON.parse(ran.stdout)).toMatchObject({ $id: 'urn:millrace:schema:flow', type: 'object' });
  });
});
