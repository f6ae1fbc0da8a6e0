/** Applies and checks job documents over HTTP, and serves their JSON Schema. */
import { gzipSync } from 'node:zlib';
import { mayRun } from '../../runtimes/local-tasks.ts';
import { MillraceError } from '../../errors.ts';
import { applyJob } from '../../jobs/apply.ts';
import type { JobDefinition } from '../../jobs/definition.ts';
import { jobJsonSchema } from '../../jobs/document/json-schema.ts';
import { documentParser } from '../../documents/parser.ts';
import { parseJobDocument } from '../../jobs/document/parse-request.ts';
import type { DocumentText, Input } from '../../http/endpoint.ts';
import { type FixedAnswer, makeFixedAnswer } from '../../http/fixed-answer.ts';
import { type ApiContext, type ApiHandlers, author } from '../context.ts';
import type { jobEndpoints } from './endpoints.ts';
import { outlookOfApplying } from '../triggers/handlers.ts';

type Keys = 'POST /api/jobs' | 'PUT /api/jobs' | 'POST /api/jobs/check' | 'GET /api/jobs/schema';

/** Built once, because anyone may request it without a key. */
let schema: FixedAnswer | undefined;

function makeSchema(): FixedAnswer {
  const plain = Buffer.from(JSON.stringify(jobJsonSchema()));
  return makeFixedAnswer({ plain, gzipped: gzipSync(plain), headers: { 'content-type': 'application/json' } });
}

export const applyHandlers: ApiHandlers<Pick<typeof jobEndpoints, Keys>> = {
  'POST /api/jobs': apply,
  'PUT /api/jobs': apply,
  'POST /api/jobs/check': check,
  'GET /api/jobs/schema': async ({ request }) => (schema ??= makeSchema())(request),
};

/** A real apply of more triggers skips the forecast, which takes seconds for some thousands. */
const maxForecastTriggers = 100;

async function apply(input: Input<(typeof jobEndpoints)['POST /api/jobs']>, context: ApiContext): Promise<Response> {
  const { dry_run: dryRun, after } = input.query;
  const applied = await applyDocument(input, context, { dryRun, after });
  if (!dryRun) sendHints(context, applied.id);
  return Response.json(applied, { status: dryRun ? 200 : 201 });
}

type Asked = Pick<Input<(typeof jobEndpoints)['POST /api/jobs']>, 'body' | 'caller' | 'request'>;
interface How {
  readonly dryRun: boolean;
  readonly after: Date | undefined;
}

async function applyDocument({ body, caller, request }: Asked, context: ApiContext, { dryRun, after }: How) {
  const { definition, warnings } = await parseForTenant(context, body, request.signal);
  // before the job is written, because the forecast compares with its previous state
  const isForecast = dryRun || definition.triggers.length <= maxForecastTriggers;
  const outlook = isForecast
    ? await outlookOfApplying(context, { definition, after, signal: request.signal })
    : undefined;
  return { ...(await applyJob(context.db, { definition, warnings, ...author(context, caller), dryRun })), outlook };
}

/** Errors that are faults of the document. Other errors are thrown. */
const documentErrors: ReadonlySet<string> = new Set(['bad_document', 'bad_reference', 'conflict']);

async function check(input: Asked, context: ApiContext): Promise<Response> {
  try {
    const applied = await applyDocument(input, context, { dryRun: true, after: undefined });
    return Response.json({ faults: [], applied });
  } catch (error) {
    if (!(error instanceof MillraceError) || !documentErrors.has(error.code)) throw error;
    const faults = error.faults.length > 0 ? error.faults : [{ path: '', message: error.message }];
    return Response.json({ faults, applied: null });
  }
}

/** Parses a document, and rejects tasks that the tenant may not run. */
export async function parseForTenant(context: ApiContext, body: DocumentText, signal: AbortSignal) {
  const parsed = await parse(body, context.tenant.id, signal);
  rejectLocalTasks(parsed.definition, context);
  return parsed;
}

async function parse({ text, format }: DocumentText, tenant: string, signal: AbortSignal) {
  const result = await parseJobDocument(documentParser, { text, format, tenant, signal });
  if (result.ok) return { definition: result.job, warnings: result.warnings };
  const detail = result.faults
    .map((fault) => (fault.path === '' ? fault.message : `${fault.path}: ${fault.message}`))
    .join('; ');
  throw new MillraceError('bad_document', detail, { faults: result.faults });
}

/** Rejects tasks that this tenant may not run. Runs of an existing job stay queued, and `why` explains it. */
function rejectLocalTasks({ tasks }: JobDefinition, { tenant, settings }: ApiContext): void {
  const faults = tasks.flatMap(({ runtime: { kind } }, i) =>
    mayRun(kind, tenant.name, settings.localTasks)
      ? []
      : [
          {
            path: `tasks[${i}].${kind}`,
            message: `only the tenant default may run tasks of this runtime (${setting})`,
          },
        ],
  );
  if (faults.length === 0) return;
  const detail = faults.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new MillraceError('bad_document', detail, { faults });
}

const setting = 'MILLRACE_LOCAL_TASKS=default';

/** Tells schedulers and streams of changed jobs. */
export function sendHints({ hints }: ApiContext, ...jobIds: readonly string[]): void {
  hints.send('triggers', jobIds);
  hints.send('tokens');
  hints.send('events');
}
