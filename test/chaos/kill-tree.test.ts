/** kill -9 of all processes in the middle of 300 runs. After the next `up` every instant completes, with effect once. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { killTree } from '../harness/process-tree.ts';
import { makeHomeFolder, type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const instants = 300;
const homes: string[] = [];

afterAll(async () => {
  for (const home of homes) await removeHome(home);
});

function document(startMs: number): string {
  const [start, end] = [startMs, startMs + instants * 1_000].map((ms) => new Date(ms).toISOString());
  return JSON.stringify({
    project: 'chaos',
    name: 'three hundred',
    triggers: [{ name: 'past', start, end, period: '1s' }],
    tasks: [
      { name: 'work', depends: ['trigger/past'], process: { command: ['sh', '-c', 'sleep 0.02; echo done'] } },
      { name: 'left', depends: ['task/work'] },
      { name: 'right', depends: ['task/work'] },
      { name: 'join', depends: ['task/left', 'task/right'] },
    ],
  });
}

async function countSuccesses({ call }: Product, jobId: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let cursor: string | undefined; ; ) {
    const query = { job: jobId, state: 'success', limit: 1_000, ...(cursor === undefined ? {} : { cursor }) };
    const { items, next } = await call('GET /api/runs', { query });
    for (const run of items) {
      const key = `${run.task?.name} ${run.instant}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    if (next === null) return counts;
    cursor = next;
  }
}

async function postmasterPid(home: string): Promise<number> {
  const text = await readFile(join(home, 'postgres', 'postmaster.pid'), 'utf8');
  return Number(text.split('\n')[0]);
}

it('after kill -9 of the process tree every instant completes once (I1–I4)', { timeout: 120_000 }, async () => {
  const home = await makeHomeFolder();
  homes.push(home);
  const first = await startProduct({ home });
  await first.call('PUT /api/projects', { body: { name: 'chaos' } });
  const { id } = await first.call('PUT /api/jobs', { body: document(Date.now() - 3_600_000) });
  await until('some have finished', async () => (await countSuccesses(first, id)).size > 150 || undefined);
  killTree(first.child.pid ?? 0, [await postmasterPid(home)]);

  const second = await startProduct({ home });
  const counts = await until(
    'all have finished',
    async () => {
      const found = await countSuccesses(second, id);
      return found.size >= instants * 4 ? found : undefined;
    },
    60_000,
  );
  expect(counts.size).toBe(instants * 4);
  expect([...counts].filter(([, n]) => n !== 1)).toEqual([]);
  const status = await second.call('GET /api/jobs/{id}', { params: { id } });
  expect(status).toMatchObject({ active_tasks: 0, waiting_tasks: 0 });
  await second.stop();
});
