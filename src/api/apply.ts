/** Applying job documents over HTTP, and the schema they follow. */
import { MillraceError } from '../errors.ts';
import { applyJob } from '../jobs/apply.ts';
import { jobJsonSchema } from '../jobs/json-schema.ts';
import { parseJobText } from '../jobs/parse-job.ts';
import type { DocumentText, Input } from '../http/endpoint.ts';
import { type ApiContext, type ApiHandlers, author } from './context.ts';
import type { jobEndpoints } from './endpoints/jobs.ts';
import { outlookOfApplying } from './triggers.ts';

type Keys = 'POST /api/jobs' | 'PUT /api/jobs' | 'GET /api/jobs/schema';

export const applyHandlers: ApiHandlers<Pick<typeof jobEndpoints, Keys>> = {
  'POST /api/jobs': apply,
  'PUT /api/jobs': apply,
  'GET /api/jobs/schema': async () => jobJsonSchema(),
};

/** Of more triggers, who asks for no outlook does not wait for one: some thousands take seconds. */
const mostTold = 100;

async function apply(input: Input<(typeof jobEndpoints)['POST /api/jobs']>, context: ApiContext): Promise<Response> {
  const { definition, warnings } = parsed(input.body);
  const { dry_run: dryRun, after } = input.query;
  // what is set off is told by what was there before
  const told = dryRun || definition.triggers.length <= mostTold;
  const outlook = told ? await outlookOfApplying(context, definition, after) : undefined;
  const applied = await applyJob(context.db, { definition, warnings, ...author(context, input.caller), dryRun });
  if (!dryRun) tell(context, applied.id);
  return Response.json({ ...applied, outlook }, { status: dryRun ? 200 : 201 });
}

function parsed(body: DocumentText) {
  const result = parseJobText(body.text, body.format);
  if (result.ok) return { definition: result.job, warnings: result.warnings };
  const detail = result.faults
    .map((fault) => (fault.path === '' ? fault.message : `${fault.path}: ${fault.message}`))
    .join('; ');
  throw new MillraceError('bad_document', detail, { faults: result.faults });
}

function tell({ broker, wake, tenant }: ApiContext, jobId: string): void {
  broker.update(tenant, [jobId]);
  wake.send(tenant.id, 'tokens');
  wake.send(tenant.id, 'events');
}
