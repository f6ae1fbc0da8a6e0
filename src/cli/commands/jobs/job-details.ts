/** `millrace job`: shows one job with its state, tasks, triggers and latest instants. */
import { formatDuration } from '../../../kernel/text/duration.ts';
import { shellWord } from '../../../kernel/text/shell-word.ts';
import { type Output, showTime, stateCell, stateWord } from '../../print/output.ts';
import { findJob } from '../../session/references.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { oneLine } from '../../print/width.ts';

const maxShownInstants = 10;

async function fetchDetails(server: Server, id: string) {
  const params = { id };
  const [job, tasks, triggers, overview] = await Promise.all([
    server.tenant('GET /api/jobs/{id}', { params }),
    server.tenant('GET /api/jobs/{id}/tasks', { params }),
    server.tenant('GET /api/jobs/{id}/triggers', { params }),
    server.tenant('GET /api/jobs/{id}/tokens-overview', { params, query: { limit: maxShownInstants } }),
  ]);
  return { ...job, tasks, triggers, instants: overview.tokens };
}

type Details = Awaited<ReturnType<typeof fetchDetails>>;

export async function showJob(session: Session, [reference = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const details = await fetchDetails(server, await findJob(server, reference));
  const { out } = session;
  out.answer(details, () => {
    showFacts(out, details);
    showTasks(out, details);
    showTriggers(out, details.triggers);
    showInstants(out, details.instants);
    hintAtWhy(out, details);
  });
}

function showFacts(out: Output, job: Details): void {
  out.facts([
    ['job', `${job.project}/${job.name}`],
    ['id', job.id],
    ['state', job.paused ? 'paused' : 'live'],
    ['version', String(job.version)],
    ...(job.description === '' ? [] : [['description', job.description] as const]),
    ['next', nextText(job)],
    ['now', `${job.active_tasks} running, ${job.waiting_tasks} ready`],
    [
      'last hour',
      `${job.succeeded_tasks_last_hour} succeeded, ${job.failed_tasks_last_hour} failed, ${job.error_tasks_last_hour} errors`,
    ],
  ]);
}

function nextText({ next_firing: next }: Details): string {
  if (next === null) return '-';
  const instant = next.instant === next.due ? '' : ` for ${showTime(next.instant)}`;
  return `${showTime(next.due)} by ${next.trigger_name}${instant}`;
}

/** Each task with its state at its latest instant. */
function showTasks(out: Output, { tasks }: Details): void {
  out.line('');
  out.table(
    [{ title: 'TASK', flexible: true }, { title: 'LATEST' }, { title: 'INSTANT' }, { title: 'ID' }],
    tasks.map((task) => {
      const latest = task.latest_state;
      const state = latest === null ? null : stateCell(latest);
      return [task.name, state, showTime(task.latest_trigger_datetime), task.task_id];
    }),
  );
}

function hintAtWhy(out: Output, { project, name, instants }: Details): void {
  const newest = Object.values(instants[0]?.task_states ?? {});
  const idle = newest.find(({ state }) => state === 'waiting' || state === 'active');
  const what = shellWord(`${project}/${name}/${idle?.task_name}`);
  if (idle) out.note(oneLine(`millrace why ${what} explains why it has not run`));
}

function showTriggers(out: Output, triggers: Details['triggers']): void {
  if (triggers.length === 0) return;
  out.line('');
  out.table(
    [
      { title: 'TRIGGER', flexible: true },
      { title: 'SCHEDULE', flexible: true },
      { title: 'START' },
      { title: 'END' },
      { title: 'LATEST' },
      { title: 'CATCHUP' },
    ],
    triggers.map((trigger) => [
      trigger.trigger_name,
      scheduleText(trigger),
      showTime(trigger.start_datetime),
      showTime(trigger.end_datetime),
      showTime(trigger.latest_trigger_datetime),
      trigger.catchup,
    ]),
  );
}

/** Periods and offsets are seconds on the wire, as in Waterwheel. */
function scheduleText(trigger: Details['triggers'][number]): string {
  const rule = trigger.period === null ? (trigger.cron ?? '-') : `every ${formatDuration(trigger.period * 1000)}`;
  const zone = trigger.timezone === null ? '' : ` ${trigger.timezone}`;
  const offset = trigger.trigger_offset ?? 0;
  const sign = offset < 0 ? '-' : '+';
  return `${rule}${zone}${offset === 0 ? '' : ` ${sign}${formatDuration(Math.abs(offset) * 1000)}`}`;
}

function showInstants(out: Output, instants: Details['instants']): void {
  if (instants.length === 0) return;
  out.line('');
  out.table(
    [{ title: 'INSTANT' }, { title: 'TASKS', flexible: true }],
    instants.map(({ trigger_datetime, task_states }) => [
      showTime(trigger_datetime),
      countStates(Object.values(task_states)),
    ]),
  );
}

function countStates(tasks: readonly { readonly state: string }[]): string {
  const counts = new Map<string, number>();
  for (const { state } of tasks) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, number]) => `${number} ${stateWord(state)}`).join(', ');
}
