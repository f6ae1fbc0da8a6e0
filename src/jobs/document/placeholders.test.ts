import { describe, expect, test } from 'vitest';
import { parseJob } from './parse-job.ts';

function warned(task: object): { path: string; message: string }[] {
  const parsed = parseJob({ project: 'p', name: 'j', tasks: [{ name: 't', ...task }] });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return [...parsed.warnings];
}
const paths = (task: object): string[] => warned(task).map(({ path }) => path);

describe('unknown placeholders', () => {
  test('the warning gives the path, the name, and the known placeholders', () => {
    const [warning, ...rest] = warned({ process: { command: ['echo', 'at {{ instnt }} or {{instnt}}'] } });
    expect(rest).toEqual([]);
    expect(warning?.path).toBe('tasks[0].process.command[1]');
    expect(warning?.message).toMatch(
      /^the placeholder \{\{instnt\}\} does not exist; valid names are instant, .*params/,
    );
  });

  test('unknown placeholders are warned of only in texts that are expanded', () => {
    const env = { A: '{{a}}', '{{B}}': 'b', C: { stash: '{{c}}' } };
    expect(paths({ process: { command: ['echo'], cwd: '/{{x}}', env } })).toEqual([
      'tasks[0].process.cwd',
      'tasks[0].process.env.A',
    ]);
    expect(paths({ docker: { image: '{{i}}', args: ['{{a}}'], env: ['{{K}}=1', 'B={{b}}'] } })).toEqual([
      'tasks[0].docker.args[0]',
      'tasks[0].docker.env[1]',
    ]);
    const input = { '{{key}}': 1, deep: [{ a: '{{}}' }] };
    expect(paths({ function: { name: '{{f}}', input } })).toEqual(['tasks[0].function.input.deep[0].a']);
  });

  test('the number of warnings is limited', () => {
    const command = Array.from({ length: 5_000 }, () => '{{x}}');
    expect(paths({ process: { command } })).toHaveLength(100);
  });
});

test('known placeholders, params of any name, and literal braces are not warned of', () => {
  const command = ['{{instant.date}}{{ run }}', '{{params}} {{params.any.thing}}', '{{{{.Id}}', '{{ and }'];
  expect(warned({ process: { command } })).toEqual([]);
});
