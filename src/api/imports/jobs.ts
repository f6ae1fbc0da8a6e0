/**
 * Imports a job in one transaction: its project if it is missing, its document, the marks of its triggers, its tokens, and the
 * note that later imports compare with. The job is paused until it is started.
 */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { type Fault, isUniqueViolation, MillraceError } from '../../errors.ts';
import type { Recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { applyWithin } from '../../jobs/apply.ts';
import type { JobDefinition } from '../../jobs/definition.ts';
import { lockReferences, lockTriggers } from '../../jobs/queries.ts';
import { type ApiContext, badRequest } from '../context.ts';
import { parseForTenant, sendHints } from '../jobs/apply.ts';
import { findProjectNamed } from '../projects/queries.ts';
import { outlookOfMarks } from '../triggers/handlers.ts';
import { type Decision, decide } from './decide.ts';
import { recordUnlessDry, type Who } from './dry-run.ts';
import type { ImportOutcome, importEndpoints } from './endpoints.ts';
import { importProject } from './projects.ts';
import { findNamesake, type ImportedRow, lockImported, noteImport, writeMarks, writeTokens } from './queries.ts';

type Endpoint = (typeof importEndpoints)['POST /api/imports/jobs'];
type Body = Input<Endpoint>['body'];
type Answer = z.input<Endpoint['answer']>;

interface Draft extends Who {
  readonly body: Body;
  readonly id: string;
  readonly definition: JobDefinition;
  readonly warnings: readonly Fault[];
  readonly digest: string;
}

export async function importJob(input: Input<Endpoint>, ctx: ApiContext): Promise<Answer> {
  const { body, caller, request } = input;
  const { definition, warnings } = await parseForTenant(ctx, { text: body.document, format: 'json' }, request.signal);
  const { uuid: id, project } = definition;
  if (id === null) throw badRequest('body.document.uuid', 'an imported job needs its uuid');
  if (project !== body.project.name) {
    throw badRequest('body.document.project', `is ${project}, but the project is ${body.project.name}`);
  }
  const digest = createHash('sha256').update(body.document).digest('hex');
  const answer = await recordUnlessDry(ctx, { dryRun: body.dry_run, caller }, (tx, who) =>
    write(tx, { body, id, definition, warnings, digest, ...who }),
  );
  if (body.dry_run) {
    return body.outlook
      ? { ...answer, ...(await forecast(ctx, { body, definition }, answer, request.signal)) }
      : answer;
  }
  if (answer.outcome === 'created' || answer.outcome === 'changed') sendHints(ctx, answer.id);
  return answer;
}

async function write(tx: Recording, draft: Draft): Promise<Answer> {
  const { body, id, digest } = draft;
  // before the job is locked, as an application does
  await lockReferences(tx);
  const [row] = await lockImported(tx, [id]);
  const clash = await findClash(tx, draft);
  if (clash !== undefined) return left(row, { id, outcome: 'conflict', reason: clash });
  const decision = decide(row && knownOf(row), digest, body.overwrite);
  return decision.act === 'leave' ? left(row, { id, ...decision }) : writeParts(tx, draft, row, decision);
}

/** Why the job has no place here. Creates its project if that is missing. */
async function findClash(tx: Recording, { body, id, definition, at }: Draft): Promise<string | undefined> {
  const project = { ...body.project, id: body.project.id.toLowerCase() };
  const ours = await findProjectNamed(tx, project.name);
  if (ours === undefined) {
    const { outcome, reason } = await importProject(tx, project, { at, overwrite: body.overwrite });
    if (outcome === 'conflict') return `its project: ${reason}`;
  } else if (ours.id !== project.id && !body.overwrite) {
    return `its project has another id here, ${ours.id}; --overwrite imports the job into it`;
  }
  const isTaken = await findNamesake(tx, { id, project: project.name, name: definition.name });
  return isTaken ? 'another job has its name here; rename or delete that one' : undefined;
}

function knownOf(row: ImportedRow) {
  const { importedVersion: version, digest } = row;
  return { ...row, imported: version === null || digest === null ? undefined : { version, digest } };
}

function left(
  row: ImportedRow | undefined,
  { id, outcome, reason }: Pick<Answer, 'id' | 'outcome' | 'reason'>,
): Answer {
  const resumes = row?.resume === true && !row.isStarted && !row.isDeleted;
  return { id, outcome, reason, resumes, triggers: 0, tokens: 0, missing: [], warnings: [] };
}

async function writeParts(
  tx: Recording,
  draft: Draft,
  row: ImportedRow | undefined,
  { document: isWritten, reason }: Extract<Decision, { act: 'write' }>,
): Promise<Answer> {
  const { body, id, digest } = draft;
  const document = isWritten ? await writeDocument(tx, draft) : undefined;
  if (document === undefined) await lockTriggers(tx, id);
  const triggers = await writeMarks(tx, id, body.triggers);
  const counts = body.tokens.flatMap(({ task, instants, counts: n }) =>
    instants.map((instant, i) => ({ task, instant, count: n[i] ?? 0 })),
  );
  const tokens = await writeTokens(tx, id, counts);
  const resumes = body.keep_resume ? (row?.resume ?? body.resume) : body.resume;
  // of a document that stays, the note says which version the import wrote
  await noteImport(tx, { job: id, version: document?.version ?? row?.importedVersion ?? 1, digest, resume: resumes });
  const isChanged = triggers + tokens > 0 || row?.resume !== resumes || document?.outcome === 'changed';
  const isNew = document?.outcome === 'created' || row?.isDeleted === true;
  const outcome: ImportOutcome = isNew ? 'created' : isChanged ? 'changed' : 'unchanged';
  const { missing = [], warnings = [] } = document ?? {};
  return { id, outcome, reason, resumes, triggers, tokens, missing: [...missing], warnings: [...warnings] };
}

async function writeDocument(tx: Recording, draft: Draft) {
  const { body, warnings, actor, at } = draft;
  const definition = { ...draft.definition, paused: true };
  const application = { definition, warnings, actor, at, dryRun: body.dry_run, leaveMissing: body.leave_missing };
  try {
    const { applied, missing } = await applyWithin(tx, application);
    return { version: applied.version, outcome: applied.outcome, warnings: applied.warnings, missing };
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new MillraceError('conflict', `another job of project ${definition.project} is called ${definition.name}`, {
      cause: error,
    });
  }
}

/** What the start would cause now. A job that is left alone has none. */
async function forecast(
  ctx: ApiContext,
  { body, definition }: Pick<Draft, 'body' | 'definition'>,
  { outcome, reason, resumes }: Answer,
  signal: AbortSignal,
): Promise<Partial<Answer>> {
  if (outcome === 'conflict' || reason !== null) return {};
  const resumed = { ...definition, paused: !resumes };
  return { outlook: await outlookOfMarks(ctx, { definition: resumed, signal }, body.triggers) };
}
