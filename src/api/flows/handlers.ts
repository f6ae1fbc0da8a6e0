/** Definitions of flows over HTTP: apply and check documents, list and read flows, delete them. */
import { gzipSync } from 'node:zlib';
import { documentParser, storedParser } from '../../documents/parser.ts';
import { MillraceError } from '../../errors.ts';
import { applyFlow, deleteFlow } from '../../flows/definitions/apply-flow.ts';
import { parseFlowDocument } from '../../flows/definitions/parse-request.ts';
import type { Definition } from '../../flows/definitions/read-definition.ts';
import { flowJsonSchema } from '../../flows/language/json-schema.ts';
import type { CallAnswer } from '../../http/client.ts';
import type { Input } from '../../http/endpoint.ts';
import { type FixedAnswer, makeFixedAnswer } from '../../http/fixed-answer.ts';
import { cutPage } from '../../http/page.ts';
import { type ApiContext, type ApiHandlers, author, requireFound } from '../context.ts';
import { drawIdle } from '../executions/views/tree.ts';
import { badDocument, rejectLocalTasks } from './document-faults.ts';
import type { flowEndpoints } from './endpoints.ts';
import { countExecutions, findFlow, listFlows, listVersions } from './queries.ts';

type Endpoints = typeof flowEndpoints;
type Asked = Pick<Input<Endpoints['POST /api/flows']>, 'body' | 'caller' | 'request'>;

/** Versions that a view of a flow lists. */
const maxVersions = 100;

async function apply(input: Input<Endpoints['POST /api/flows']>, ctx: ApiContext): Promise<Response> {
  const { dry_run: dryRun } = input.query;
  const applied = await applyDocument(input, ctx, dryRun);
  return Response.json(applied, { status: applied.changed && !dryRun ? 201 : 200 });
}

async function applyDocument({ body, caller, request }: Asked, ctx: ApiContext, dryRun: boolean) {
  const parsed = await parseFlowDocument(documentParser, { ...body, tenant: ctx.tenant.id, signal: request.signal });
  if (!parsed.ok) throw badDocument(parsed.faults);
  rejectLocalTasks(parsed.definition, ctx);
  const applied = await applyFlow(ctx.db, { definition: parsed.definition, ...author(ctx, caller), dryRun });
  if (applied.changed && !dryRun) ctx.hints.send('events');
  return applied;
}

/** Errors that are faults of the document. Other errors are thrown. */
const documentErrors: ReadonlySet<string> = new Set(['bad_document', 'bad_reference']);

async function check(input: Asked, ctx: ApiContext): Promise<CallAnswer<Endpoints['POST /api/flows/check']>> {
  try {
    const applied = await applyDocument(input, ctx, true);
    return { faults: [], applied: { ...applied, warnings: [...applied.warnings] } };
  } catch (error) {
    if (!(error instanceof MillraceError) || !documentErrors.has(error.code)) throw error;
    const faults = error.faults.length > 0 ? error.faults : [{ path: '', message: error.message }];
    return { faults: [...faults], applied: null };
  }
}

async function list({ query }: Input<Endpoints['GET /api/flows']>, { db }: ApiContext) {
  const { limit, cursor } = query;
  const [rows, counted] = await Promise.all([listFlows(db, { after: cursor, limit: limit + 1 }), countExecutions(db)]);
  return cutPage(rows, {
    limit,
    cursorOf: ({ name }) => name,
    render: ({ id, updated_at: at, ...flow }) => {
      const counts = { running: 0, waiting: 0, paused: 0, incident: 0 };
      for (const { flow_id: flowId, kind, n } of counted) if (flowId === id) counts[kind] = n;
      return { ...flow, updated_at: at.toISOString(), counts };
    },
  });
}

async function show(input: Input<Endpoints['GET /api/flows/{name}']>, ctx: ApiContext) {
  const { params, query, request } = input;
  const wished = query.version === undefined ? params.name : `${params.name}, version ${query.version}`;
  const flow = requireFound(await findFlow(ctx.db, params.name, query.version), 'flow', wished);
  const [versions, definition] = await Promise.all([
    listVersions(ctx.db, flow.id, maxVersions),
    readStored(ctx, flow.document, request.signal),
  ]);
  const { name, description, project, document, outline, functions, warnings } = definition;
  return {
    name,
    version: flow.version,
    description,
    project,
    document,
    tree: drawIdle(outline),
    versions: versions.map((row) => ({ ...row, at: row.at.toISOString() })),
    functions: [...functions],
    warnings: [...warnings],
  };
}

async function readStored(ctx: ApiContext, text: string, signal: AbortSignal): Promise<Definition> {
  const parsed = await parseFlowDocument(storedParser, { text, format: 'json', tenant: ctx.tenant.id, signal });
  if (parsed.ok) return parsed.definition;
  // a stored document was accepted once
  throw badDocument(parsed.faults);
}

async function remove({ params, caller }: Input<Endpoints['DELETE /api/flows/{name}']>, ctx: ApiContext) {
  requireFound(await deleteFlow(ctx.db, params.name, author(ctx, caller)), 'flow', params.name);
  ctx.hints.send('events');
}

/** Built once, because anyone may request it without a key. */
let schema: FixedAnswer | undefined;

function makeSchema(): FixedAnswer {
  const plain = Buffer.from(JSON.stringify(flowJsonSchema()));
  return makeFixedAnswer({ plain, gzipped: gzipSync(plain), headers: { 'content-type': 'application/json' } });
}

export const flowHandlers: ApiHandlers<Endpoints> = {
  'GET /api/flows': list,
  'POST /api/flows': apply,
  'POST /api/flows/check': check,
  'GET /api/flow-schema': async ({ request }) => (schema ??= makeSchema())(request),
  'GET /api/flows/{name}': show,
  'DELETE /api/flows/{name}': remove,
};
