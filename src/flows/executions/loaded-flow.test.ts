import { expect, it } from 'vitest';
import { loadFlow } from './loaded-flow.ts';

it('A flow that was parsed long ago is parsed again when it is used, and its memory was free meanwhile.', () => {
  const text = 'x'.repeat(500_000);
  const flows = Array.from({ length: 10 }, (_, i) => {
    const row = { flow_id: 'f', version: i, name: 'f', project_id: null };
    return loadFlow(row, { flow: 'f', description: text, steps: [{ task: `work-${i}` }] });
  });
  const first = flows[0]?.parsed;
  expect(flows[0]?.parsed).toBe(first);
  expect(flows.map(({ functions }) => functions)).toEqual(flows.map((_, i) => [`work-${i}`]));
  expect(flows[0]?.parsed).not.toBe(first);
  expect(flows[0]?.parsed).toMatchObject({ ok: true });
});
