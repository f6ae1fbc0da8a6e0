/**
 * `millrace flow apply`: sends flows from files.
 *
 * 1. Every file is validated here. If one has a fault, nothing is sent.
 * 2. Flows are sent one by one. One that the server rejects does not stop the others, and the command exits with 1.
 */
import { MillraceError, type Fault } from '../../../errors.ts';
import { type ParsedFlow, parseFlow } from '../../../flows/language/parse-flow.ts';
import { CallFailed } from '../../../http/client.ts';
import { count, type Output } from '../../print/output.ts';
import { oneLine } from '../../print/width.ts';
import { addSource, type PlacedFault, readDocumentFiles, showFault } from '../../session/document-files.ts';
import { Ended, exitCodes } from '../../session/exit.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';

interface ApplyOptions {
  readonly file: readonly string[];
  readonly dryRun: boolean;
}

interface FlowFile {
  readonly source: string;
  readonly name: string;
  readonly value: unknown;
  readonly warnings: readonly PlacedFault[];
}

type Result = { readonly file: string; readonly name: string } & (
  | { readonly outcome: 'applied' | 'unchanged'; readonly version: number }
  | {
      readonly outcome: 'failed';
      readonly error: { readonly code: string; readonly message: string; readonly faults: readonly Fault[] };
    }
);

export async function applyFlows(session: Session, { file, dryRun }: ApplyOptions): Promise<void> {
  const flows = await readFlows(session, file);
  const server = await session.connect();
  const results: Result[] = [];
  try {
    for (const flow of flows) results.push(await applyOne(server, flow, dryRun));
  } finally {
    report(session.out, results, dryRun);
    if (!session.out.json)
      for (const warning of flows.flatMap(({ warnings }) => warnings))
        session.out.note(`warning: ${showFault(warning)}`);
  }
  if (results.some(({ outcome }) => outcome === 'failed')) throw new Ended(exitCodes.failed);
}

async function readFlows({ io }: Session, paths: readonly string[]): Promise<FlowFile[]> {
  const files = await readDocumentFiles(io, paths);
  const parsed = files.documents.map(({ source, value }) => ({ source, value, result: parseFlow(value) }));
  const faults = [...files.faults, ...parsed.flatMap(({ source, result }) => faultsIn(source, result))];
  const flows = parsed.flatMap(({ source, value, result }) =>
    result.ok ? [{ source, value, name: result.flow.name, warnings: addSource(source, result.warnings) }] : [],
  );
  faults.push(...findDuplicates(flows));
  if (faults.length === 0) return flows;
  const list = faults.map((fault) => ({ path: '', message: showFault(fault) }));
  throw new MillraceError('bad_document', `${count(list.length, 'fault')}; nothing was applied`, { faults: list });
}

function faultsIn(source: string, result: ParsedFlow): PlacedFault[] {
  return result.ok ? [] : addSource(source, result.faults);
}

/** The later one would silently replace the earlier. */
function findDuplicates(flows: readonly FlowFile[]): PlacedFault[] {
  const first = new Map<string, string>();
  return flows.flatMap(({ source, name }) => {
    const other = first.get(name);
    first.set(name, other ?? source);
    return other === undefined ? [] : [{ source, path: 'flow', message: `${name} is also the flow in ${other}` }];
  });
}

async function applyOne(server: Server, { source, name, value }: FlowFile, dryRun: boolean): Promise<Result> {
  try {
    const { version, changed } = await server.tenant('POST /api/flows', {
      query: { dry_run: dryRun ? 'true' : 'false' },
      body: JSON.stringify(value),
    });
    return { file: source, name, outcome: changed ? 'applied' : 'unchanged', version };
  } catch (error) {
    if (!(error instanceof CallFailed) || [401, 403].includes(error.status)) throw error;
    const { code = 'internal', faults = [] } = error.problem ?? {};
    return { file: source, name, outcome: 'failed', error: { code, message: error.message, faults } };
  }
}

function report(out: Output, results: readonly Result[], dryRun: boolean): void {
  const would = dryRun ? 'would be ' : '';
  out.answer({ dry_run: dryRun, flows: results }, () => {
    for (const result of results) for (const line of linesOf(out, result, would)) out.line(line);
  });
}

function linesOf({ paint }: Output, result: Result, would: string): string[] {
  if (result.outcome === 'failed') {
    const { message, faults } = result.error;
    const details = faults.map((fault) => `    ${showFault({ source: result.file, ...fault })}`);
    return [paint('red', `✗ ${result.name}: ${oneLine(message)}`), ...details];
  }
  if (result.outcome === 'unchanged') return [paint('dim', `= ${result.name} is version ${result.version}, unchanged`)];
  return [paint('green', `+ ${result.name} ${would}version ${result.version}`)];
}
