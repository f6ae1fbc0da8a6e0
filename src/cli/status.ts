/** `millrace status`: is the server well, what does it run, who works for it. */
import { isRecord } from '../jobs/path.ts';
import { CallFailed } from '../http/client.ts';
import { Ended, exitCodes } from './exit.ts';
import { type Output, showTime, stateStyle } from './output.ts';
import type { Server } from './server.ts';
import type { Session } from './session.ts';

async function fetchStatus(server: Server) {
  const [health, version, counts, workers, schedulers] = await Promise.all([
    fetchHealth(server),
    fetchVersion(server),
    server.tenant('GET /api/status'),
    server.tenant('GET /api/workers'),
    server.tenant('GET /api/schedulers'),
  ]);
  return { url: server.url, health, version, counts, workers, schedulers };
}

type Status = Awaited<ReturnType<typeof fetchStatus>>;

async function fetchHealth(server: Server): Promise<{ readonly ok: boolean; readonly reason: string | null }> {
  try {
    await server.gateway('GET /healthz');
    return { ok: true, reason: null };
  } catch (error) {
    if (error instanceof CallFailed && error.status === 503) return { ok: false, reason: error.message };
    throw error;
  }
}

/** The API says its version in its own description. */
async function fetchVersion(server: Server): Promise<string | null> {
  const { info } = await server.gateway('GET /openapi.json');
  return isRecord(info) && typeof info['version'] === 'string' ? info['version'] : null;
}

export async function showStatus(session: Session): Promise<void> {
  const status = await fetchStatus(await session.connect());
  session.out.answer(status, () => {
    showFacts(session.out, status);
    showWorkers(session.out, status.workers);
    showSchedulers(session.out, status.schedulers);
  });
  if (!status.health.ok) throw new Ended(exitCodes.failed);
}

function showFacts(out: Output, { url, health, version, counts }: Status): void {
  out.facts([
    ['server', url],
    ['health', health.ok ? 'ok' : `not yet: ${health.reason}`],
    ['version', version ?? '-'],
    ['projects', String(counts.num_projects)],
    ['workers', String(counts.num_workers)],
    ['running tasks', String(counts.running_tasks)],
  ]);
}

function showWorkers(out: Output, workers: Status['workers']): void {
  if (workers.length === 0) return;
  out.line('');
  out.table(
    [
      { title: 'WORKER', flexible: true },
      { title: 'ID' },
      { title: 'STATUS' },
      { title: 'RUNNING', align: 'right' },
      { title: 'PLACES', align: 'right' },
      { title: 'RUNTIMES', flexible: true },
      { title: 'QUEUES', flexible: true },
      { title: 'VERSION' },
      { title: 'LAST SEEN' },
    ],
    workers.map((worker) => [
      worker.name || worker.uuid,
      // its end is the random part: enough to tell the workers of one host apart
      worker.uuid.slice(-6),
      { text: worker.status, style: stateStyle(worker.status) },
      worker.running_tasks,
      worker.total_tasks,
      worker.runtimes.join(','),
      worker.queues.join(','),
      worker.version,
      showTime(worker.last_seen_datetime),
    ]),
  );
}

function showSchedulers(out: Output, schedulers: Status['schedulers']): void {
  if (schedulers.length === 0) return;
  out.line('');
  out.table(
    [
      { title: 'SCHEDULER' },
      { title: 'STATUS' },
      { title: 'TRIGGERS', align: 'right' },
      { title: 'VERSION' },
      { title: 'LAST SEEN' },
    ],
    schedulers.map((scheduler) => [
      scheduler.uuid,
      { text: scheduler.status, style: stateStyle(scheduler.status) },
      scheduler.queued_triggers,
      scheduler.version,
      showTime(scheduler.last_seen_datetime),
    ]),
  );
}
