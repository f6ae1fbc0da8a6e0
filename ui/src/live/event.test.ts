import { expect, test } from 'vitest';
import { readEvent, textOf } from './event.ts';

const data = {
  topic: 'millrace_runs',
  type: 'run.created',
  subject: 'r',
  actor: 'scheduler',
  at: '2026-01-31T00:00:00Z',
};

test('an event is read whether its body is an object or text', () => {
  for (const body of [{ job: 'j' }, '{"job":"j"}']) {
    const event = readEvent('7', JSON.stringify({ ...data, body }));
    expect(event).toEqual({ ...data, seq: 7, body: { job: 'j' } });
    expect(event && textOf(event, 'job')).toBe('j');
  }
});

test('what is not an event is passed over', () => {
  const bad = [
    ['', JSON.stringify(data)],
    ['x', JSON.stringify(data)],
    ['7', 'hello'],
    ['7', 'null'],
    ['7', '{}'],
  ] as const;
  for (const [id, text] of bad) expect(readEvent(id, text)).toBeUndefined();
});
