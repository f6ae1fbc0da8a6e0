/** Handlers of imports. Each request is one transaction; a dry run rolls it back. */
import { recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { type ApiContext, type ApiHandlers, author } from '../context.ts';
import { sendHints } from '../jobs/apply.ts';
import { recordUnlessDry } from './dry-run.ts';
import type { importEndpoints } from './endpoints.ts';
import { importJob } from './jobs.ts';
import { importProject } from './projects.ts';
import { insertRetries, lockImported, markStarted, unpauseJobs } from './queries.ts';
import { importStash } from './stash.ts';

type StartEndpoint = (typeof importEndpoints)['POST /api/imports/start'];

/** Retries and the end of the pause are one commit, so a retry is never queued twice. */
async function start({ body, caller }: Input<StartEndpoint>, ctx: ApiContext) {
  const who = author(ctx, caller);
  const wanted = body.jobs.map((id) => id.toLowerCase());
  const result = await recording(ctx.db, who, async (tx) => {
    const rows = await lockImported(tx, wanted);
    const ready = rows.filter((row) => row.resume !== null && !row.isStarted && !row.isDeleted);
    const ids = new Set(ready.map(({ id }) => id));
    const resumed = ready.filter(({ resume }) => resume === true);
    const started = resumed.map(({ id }) => id);
    await unpauseJobs(tx, started, who.at);
    for (const { id, name } of resumed)
      tx.record('millrace_jobs', { type: 'job.unpaused', subject: id, body: { name } });
    await insertRetries(
      tx,
      body.retries.filter(({ job }) => ids.has(job.toLowerCase())),
    );
    await markStarted(tx, [...ids], who.at);
    return { started, paused: [...ids].filter((id) => !started.includes(id)) };
  });
  if (result.started.length > 0) sendHints(ctx, ...result.started);
  return result;
}

export const importHandlers: ApiHandlers<typeof importEndpoints> = {
  'POST /api/imports/projects': async ({ body, caller }, ctx) => {
    const { project, overwrite, dry_run: dryRun } = body;
    const draft = { ...project, id: project.id.toLowerCase() };
    const result = await recordUnlessDry(ctx, { dryRun, caller }, (tx, { at }) =>
      importProject(tx, draft, { at, overwrite }),
    );
    if (!dryRun && (result.outcome === 'created' || result.outcome === 'changed')) {
      ctx.hints.send('invalidate', { tenant: ctx.tenant.id, kind: 'project', id: result.id ?? draft.id });
      ctx.hints.send('events');
    }
    return result;
  },
  'POST /api/imports/jobs': importJob,
  'POST /api/imports/stash': async ({ body, caller }, ctx) => {
    const { dry_run: dryRun } = body;
    const result = await recordUnlessDry(ctx, { dryRun, caller }, (tx) => importStash(tx, ctx, body));
    if (!dryRun && result.written > 0) ctx.hints.send('events');
    return result;
  },
  'POST /api/imports/start': start,
};
