import { randomUUID } from 'node:crypto';
import { it } from 'vitest';
import { removeHome, startProduct } from '../harness/product.ts';
import { waterwheel } from '../harness/waterwheel.ts';
it('rep', async () => {
  const product = await startProduct({ env: { MILLRACE_LOG: 'debug' } });
  const client = waterwheel(product);
  const uuid = randomUUID(),
    job = randomUUID();
  await client.send('POST', '/api/projects', { uuid, name: 'test_project', description: 'x' });
  await client.deploy({
    uuid: job,
    project: 'test_project',
    name: 'a',
    description: '',
    triggers: [],
    tasks: [{ name: 's' }],
  });
  const t0 = performance.now();
  for (let i = 0; i < 150; i++) {
    await Promise.all([
      client.send('POST', '/api/projects', { uuid, name: 'test_project', description: `x${i}`, config: { i } }),
      client.send('POST', `/api/jobs/${job}/run`, {}),
    ]);
  }
  for (;;) {
    const { items } = await product.call('GET /api/runs', { query: { state: 'running,active' as never } });
    const fin = await product.call('GET /api/runs', {
      query: { state: 'success,failure,error' as never, limit: 1000 },
    });
    console.log(
      Math.round(performance.now() - t0),
      'live',
      items.length,
      'done',
      fin.items.length,
      items
        .slice(0, 2)
        .map((r) => [r.task?.name, r.state, r.lease, r.started_at, r.queued_at].join(' '))
        .join(' | '),
    );
    if (fin.items.length >= 150 || performance.now() - t0 > 60000) break;
    await new Promise((r) => setTimeout(r, 1000));
  }
  const fin = await product.call('GET /api/runs', { query: { state: 'success,failure,error' as never, limit: 1000 } });
  console.log(fin.items.filter((r) => r.lease > 1).length, 'with lease>1');
  await product.stop();
  console.log(
    product
      .output()
      .split('\n')
      .filter((l) => /warn|error/i.test(l))
      .slice(0, 20)
      .join('\n'),
  );
  await removeHome(product.home);
}, 120_000);
