/** `millrace flow`: documents of flows. The code that reads them is loaded on demand, as for job documents. */
import type { Command } from 'commander';
import { count } from '../../print/output.ts';
import { Ended, exitCodes } from '../../session/exit.ts';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

export function addFlowCommands(program: Command, io: Io): void {
  const flow = program.command('flow').description('Check the documents of flows. Needs no server.');
  const validate = flow
    .command('validate')
    .description('Check flow files: every fault as FILE:PATH: MESSAGE. Exits with 1 if there is one.')
    .argument('<path...>', 'files (.json, .yaml, .yml), folders, or - for stdin')
    .action(verb(io, noOptions, validateFiles));
  examples(validate, [
    ['millrace flow validate flows/', 'all files of a folder, and of the folders in it'],
    ['millrace flow validate --json flows/ | jq .faults', 'for an editor or a CI job'],
  ]);
  const schema = flow
    .command('schema')
    .description('Print the JSON Schema of flow documents, for editors and other tools.')
    .action(verb(io, noOptions, printSchema));
  examples(schema, [['millrace flow schema > flow.schema.json', 'then select it in your editor']]);
}

async function printSchema({ out }: Session): Promise<void> {
  const { flowJsonSchema } = await import('../../../flows/language/json-schema.ts');
  out.line(JSON.stringify(flowJsonSchema(), null, 2));
}

async function validateFiles({ io, out }: Session, paths: readonly string[]): Promise<void> {
  const { readDocumentFiles, showFault, addSource } = await import('../../session/document-files.ts');
  const { parseFlow } = await import('../../../flows/language/parse-flow.ts');
  const files = await readDocumentFiles(io, paths);
  const parsed = files.documents.map(({ source, value }) => ({ source, result: parseFlow(value) }));
  const flows = parsed.flatMap(({ source, result }) => (result.ok ? [{ source, name: result.flow.name }] : []));
  const faults = [
    ...files.faults,
    ...parsed.flatMap(({ source, result }) => (result.ok ? [] : addSource(source, result.faults))),
  ];
  const warnings = parsed.flatMap(({ source, result }) => (result.ok ? addSource(source, result.warnings) : []));
  out.answer({ ok: faults.length === 0, flows, faults, warnings }, () => {
    for (const fault of faults) out.line(showFault(fault));
  });
  if (!out.json) for (const warning of warnings) out.note(`warning: ${showFault(warning)}`);
  if (faults.length === 0) return out.note(`${count(flows.length, 'flow')}, no faults`);
  out.note(count(faults.length, 'fault'));
  throw new Ended(exitCodes.failed);
}
