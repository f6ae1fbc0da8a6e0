/**
 * `millrace flow validate|schema|test`: documents of flows, without a server. The code that reads them is loaded on demand, as for
 * job documents.
 */
import type { Command } from 'commander';
import { z } from 'zod';
import { count } from '../../print/output.ts';
import { Ended, exitCodes } from '../../session/exit.ts';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { jsonSource } from '../../session/json-value.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import type { TestAction } from './test-actions.ts';

export function addFlowDocumentCommands(flow: Command, io: Io): void {
  const validate = flow
    .command('validate')
    .description('Check flow files: every fault as FILE:PATH: MESSAGE. Exits with 1 if there is one. Needs no server.')
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
  addTest(flow, io);
}

const testFlags = z.object({ input: z.string().optional(), now: z.string().optional() });

/** The flags that make things happen are collected together, because their order counts. */
function addTest(flow: Command, io: Io): void {
  const wishes: [flag: TestAction['kind'], value: string][] = [];
  const collect = (flag: TestAction['kind']) => (value: string) => void wishes.push([flag, value]);
  const command = flow
    .command('test')
    .description(
      'Try a flow in milliseconds, with simulated time, and print what happens when. Needs no server, and calls no task: tasks ' +
        'give null, or what --answer says, and those of people wait for it. Exits with 1 if the execution fails or needs repair.',
    )
    .argument('<file>', 'a file with one flow (.json, .yaml, .yml), or - for stdin')
    .option('--input <json>', `the input: ${jsonSource}`)
    .option('--now <instant>', 'when it starts (2026-01-01T00:00:00Z)')
    .option(
      '--skip <duration>',
      'let time pass; repeatable, as the following flags are, and done in their order',
      collect('skip'),
    )
    .option('--signal <name=json>', 'send a signal; without a payload, only NAME', collect('signal'))
    .option('--answer <task=json>', 'the result of a task: of a person now, of others at each call', collect('answer'))
    .option('--fail <task=code>', 'let a task fail, likewise', collect('fail'))
    .action(
      verb(io, testFlags, async (session, [path = ''], flags) => {
        const { readAction } = await import('./test-actions.ts');
        const actions = wishes.map(([flag, value]) => readAction(flag, value));
        await (await import('./simulate.ts')).simulate(session, path, flags, actions);
      }),
    );
  examples(command, [
    [`millrace flow test expense.yaml --input '{"manager": "meg"}' --skip 8d`, 'who is reminded, and asked then?'],
    [`millrace flow test expense.yaml --input @e.json --answer 'approve={"approved": true}'`, 'a decision'],
    [`millrace flow test order.yaml --input @o.json --fail ship=no_carrier`, 'what is undone?'],
  ]);
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
