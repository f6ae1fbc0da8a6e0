/**
 * The program that ends the containers of a worker that has died: `node container-reaper.js OWNER`. A shell starts it when the
 * worker's pipe closes (`reaper.ts`). It ends containers softly, and hard after 2 s, and repeats until none is left: an engine that
 * is away may come back with them, and one that was busy may still create one.
 */
import { pause } from '../../kernel/service.ts';
import { removeContainer } from './container-calls.ts';
import { findEngine } from './engine-address.ts';
import { EngineClient, EngineError } from './engine-client.ts';
import { listContainers } from './owned-containers.ts';
import { labels } from './owner.ts';

/** Shorter than that of a worker, because the runs may soon start again elsewhere. */
const graceSeconds = 2;
const pauseMs = 2_000;
/** Searches in a row without a container. */
const enoughEmpty = 2;
/** After 15 minutes without an engine, the next sweep of another worker has to find them. */
const maxMs = 15 * 60_000;

async function reap(owner: string): Promise<void> {
  const { MILLRACE_DOCKER_HOST: host, MILLRACE_DOCKER_CERTS: certs } = process.env;
  const client = new EngineClient(findEngine({ host, certs }, process.env));
  const startedAt = performance.now();
  for (let empty = 0; empty < enoughEmpty && performance.now() - startedAt < maxMs; ) {
    const found = await listContainers(client, [`${labels.owner}=${owner}`]).catch(() => undefined);
    empty = found?.length === 0 ? empty + 1 : 0;
    await Promise.all((found ?? []).map(({ id }) => end(client, id).catch(() => {}))); // the next search finds it again
    if (empty < enoughEmpty) await pause(pauseMs);
  }
}

async function end(client: EngineClient, id: string): Promise<void> {
  try {
    await client.call({ method: 'POST', path: `/containers/${id}/stop`, query: { t: graceSeconds } });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
  }
  await removeContainer(client, id);
}

const [, , owner = ''] = process.argv;
if (owner !== '') await reap(owner);
