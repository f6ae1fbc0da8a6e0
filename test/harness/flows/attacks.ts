/** The worst that executions and their clients can do, a line each. */
import { expect } from 'vitest';
import { until } from '../until.ts';
import type { Attacker } from './attacker.ts';

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

export interface Attack {
  readonly what: string;
  readonly work: (by: Attacker) => Promise<void>;
}

const large = 'x'.repeat(1_000_000);
const ten = (name: string): string => `[${many(10, () => name).join()}]`;
const doubled = `[1]${'abcdefghi'
  .split('')
  .map((name) => `.map(${name}, ${ten(name)})`)
  .join('')}`;
const costly = [
  doubled,
  `string(${doubled})`,
  'f.numbers.map(x, f.numbers)',
  'f.numbers.filter(x, f.large < f.large + "x")',
  'f.numbers.filter(x, f.keys.exists(k, true)).size()',
  'f.numbers.map(x, "").join(f.text)',
  'f.text.replace("", f.text)',
  String.raw`f.text.matches("(.?){400}z$")`,
  String.raw`f.numbers.exists(x, f.text.matches("\\pL{900}" + string(x)))`,
  'f.numbers.exists(x, f.keys[f.text] == 1)',
  'f.constructor.constructor("return process")()',
  'f["__proto__"].x',
];
const fields = {
  numbers: many(20_000, (i) => i),
  keys: Object.fromEntries(many(9_000, (i) => [`k${i}`, i])),
  text: 'x'.repeat(100_000),
  large: 'x'.repeat(200_000),
};

export const attacks: readonly Attack[] = [
  {
    what: 'executions evaluate expressions that would take seconds, or gigabytes',
    work: async (by) => {
      const steps = costly.map((source) => ({ set: { 'f.x': `$(${source})` }, on_error: [{ set: { ret: 1 } }] }));
      const applied = await Promise.all(costly.map((_, i) => by.apply({ flow: `costly-${i}`, steps: [steps[i]] })));
      // the host is not reached: there are no such functions
      expect(applied.filter((status) => status >= 300)).toHaveLength(1);
      const known = applied.flatMap((status, i) => (status < 300 ? [`costly-${i}`] : []));
      const ids = await Promise.all(known.map((flow) => by.launch(flow, fields)));
      for (const id of ids) expect((await by.read(id)).status).toBe('done');
    },
  },
  {
    what: 'one step sets 2,000 fields to costly values',
    work: async (by) => {
      const step = { set: Object.fromEntries(many(2_000, (i) => [`f.k${i}`, '$(f.numbers.map(x, x).size())'])) };
      const id = await by.start([step], fields);
      expect((await by.read(id)).status).toBe('incident');
      await by.kill(id);
    },
  },
  {
    what: '1,000 steps compare each signal with costly conditions',
    work: async (by) => {
      const match = 'f.numbers.exists(x, x == -1)';
      const listening = many(1_000, () => ({ on: { signal: 'go', match }, do: [{ task: 'never' }] }));
      const id = await by.start([...listening, { wait: { on: { signal: 'end' } } }], fields);
      const body = { name: 'go', payload: 1 };
      await Promise.all(many(20, () => by.send('POST', `/api/executions/${id}/signals`, body)));
      await by.kill(id);
    },
  },
  {
    what: 'thousands of branches begin at once',
    work: async (by) => by.kill(await by.start([{ parallel: many(4_900, () => ({ task: 'nobody' })) }])).then(() => {}),
  },
  {
    what: 'each works on 100,000 items, 1,000 at a time',
    work: async (by) => {
      const each = { each: 'input', concurrent: 1_000, do: [{ set: { ret: '$(it)' } }] };
      await by.letWork(
        await by.start(
          [each],
          many(100_000, (i) => i),
        ),
        20,
      );
    },
  },
  {
    what: 'a loop does not pause',
    work: async (by) => {
      const loop = { loop: [{ set: { 'f.n': '$(f.n + 1)' } }], max: 1_000_000_000 };
      await by.letWork(await by.start([loop], { n: 0 }), 300);
    },
  },
  {
    what: 'a state grows with every round',
    work: async (by) => {
      const grow = { each: 'input.items', do: [{ set: { ret: 1 }, undo: [{ task: 'u', with: '$(f)' }] }] };
      await by.letWork(await by.start([grow, { fail: 'all' }], { items: many(2_000, (i) => i), large }), 40);
    },
  },
  {
    what: 'thousands of timers are due, every one again and again',
    work: async (by) => {
      const every = many(300, () => ({ on: { every: '1ms' }, do: [{ set: { ret: 1 } }] }));
      const waits = many(1_200, (i) => ({ wait: `${(i % 10) * 100 + 100}ms` }));
      const id = await by.start([...every, { parallel: waits }, { wait: '1h' }]);
      await until(
        'it sleeps',
        async () => (await by.send('GET', `/api/executions/${id}`)).text.includes('"verb":"wait"') || undefined,
      );
      await by.letWork(id, 200);
    },
  },
  {
    what: 'one execution gets thousands of signals',
    work: async (by) => {
      const id = await by.start([{ wait: { on: { signal: 'end' } } }]);
      const body = { name: 'go', payload: 'x' };
      for (let sent = 0; sent < 2_000; sent += 100)
        await Promise.all(many(100, () => by.send('POST', `/api/executions/${id}/signals`, body)));
      await by.kill(id);
    },
  },
  {
    what: 'inputs, signals and results of a megabyte',
    work: async (by) => {
      const id = await by.start([{ wait: { on: { signal: 'end' } } }]);
      const values = `[${'[],'.repeat(170_000)}[]]`;
      const sent = await Promise.all([
        ...many(8, () => by.send('POST', `/api/executions/${id}/signals`, { name: 'go', payload: large })),
        ...many(4, () => by.send('POST', '/api/executions', `{"flow":"worst","input":${values}}`)),
        by.send('POST', '/api/executions', { flow: 'worst', input: 'x'.repeat(4_000_000) }),
        by.send('POST', '/api/executions', `{"flow":"worst","input":${'['.repeat(100_000)}`),
        by.send('POST', '/api/executions/bulk', {
          flow: 'worst',
          items: many(4, () => ({ input: 'x'.repeat(900_000) })),
        }),
      ]);
      expect(sent.map(({ status }) => status)).toContain(413);
      await by.kill(id);
    },
  },
  {
    what: 'a state of two million values is stored and read',
    work: async (by) => {
      const numbers = many(120_000, (i) => i % 10);
      const sets = many(16, (i) => ({ set: { [`f.k${i}`]: '$(f.numbers)' } }));
      const id = await by.start([...sets, { wait: '1h' }], { numbers });
      for (let i = 0; i < 3; i++) await by.send('GET', `/api/executions/${id}`);
      await by.send('GET', `/api/executions/${id}/history?limit=1000`);
      await by.send('PATCH', `/api/executions/${id}`, { fields: { a: 1 }, dry_run: true });
      await by.kill(id);
    },
  },
  {
    what: 'a long history is read, at many of its revisions',
    work: async (by) => {
      const loop = { loop: [{ wait: '1ms' }, { set: { 'f.n': '$(f.n + 1)' } }] };
      const id = await by.start([loop], { n: 0 });
      await until('it is long', async () => (await by.read(id)).rev > 300 || undefined);
      await Promise.all(many(20, (i) => by.send('GET', `/api/executions/${id}/history?limit=1000&after=${i}`)));
      await Promise.all(many(20, (i) => by.send('GET', `/api/executions/${id}?rev=${i * 15}`)));
      await by.kill(id);
    },
  },
  {
    what: 'steps of executions are replaced by large ones, and these are forked and read',
    work: async (by) => {
      const id = await by.start([{ wait: '1h' }, { set: { ret: 1 } }]);
      const swap = { 'steps[1]': many(1_000, (i) => ({ set: { 'f.x': `$(now == now && ${i} > 1)` } })) };
      expect((await by.send('PATCH', `/api/executions/${id}`, { swap })).status).toBe(200);
      const forks = await Promise.all(many(6, () => by.send('POST', `/api/executions/${id}/fork`, {})));
      await Promise.all(many(10, () => by.send('GET', `/api/executions/${id}`)));
      await by.send('PATCH', `/api/executions/${id}`, { swap: { 'steps[1]': [{ nonsense: 1 }], nowhere: [] } });
      for (const { text } of forks) await by.kill((JSON.parse(text) as { id: string }).id);
      await by.kill(id);
    },
  },
  {
    what: '1,000 executions start with one request',
    work: async (by) => {
      await by.apply({ flow: 'bulk', labels: { a: '$(input)' }, steps: [{ wait: '1h' }] });
      await by.send('POST', '/api/executions/bulk', { flow: 'bulk', items: many(1_000, (i) => ({ input: `${i}` })) });
      let cursor: string | undefined;
      do {
        const body = {
          filter: { flow: 'bulk' },
          action: 'kill',
          limit: 1_000,
          ...(cursor === undefined ? {} : { cursor }),
        };
        const { text } = await by.send('POST', '/api/executions/operate', body);
        cursor = (JSON.parse(text) as { next: string | null }).next ?? undefined;
      } while (cursor !== undefined);
    },
  },
  {
    what: 'twenty large flows start at once',
    work: async (by) => {
      const steps = many(2_500, (i) => ({ set: { 'f.x': `$(f.n + ${i})` } }));
      const names = many(20, (i) => `large-${i}`);
      for (const flow of names) expect(await by.apply({ flow, steps: [{ wait: '1h' }, ...steps] })).toBeLessThan(300);
      const ids = await Promise.all(names.map((name) => by.launch(name, { n: 1 })));
      await Promise.all(ids.map((id) => by.kill(id)));
    },
  },
];
