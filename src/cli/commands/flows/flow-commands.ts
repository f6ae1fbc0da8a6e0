/** `millrace flow`: documents of flows, definitions on the server, and their executions. */
import type { Command } from 'commander';
import type { Io } from '../../session/io.ts';
import { addChangeCommands } from './change-commands.ts';
import { addControlCommands } from './control-commands.ts';
import { addDefinitionCommands } from './definition-commands.ts';
import { addFlowDocumentCommands } from './document-commands.ts';
import { addExecutionCommands } from './execution-commands.ts';
import { addStart } from './start.ts';
import { examples } from '../../session/flags.ts';

export function addFlowCommands(program: Command, io: Io): void {
  const flow = program.command('flow').description('Apply, start, watch, repair, change and test flows.');
  addFlowDocumentCommands(flow, io);
  addDefinitionCommands(flow, io);
  addStart(flow, io);
  addExecutionCommands(flow, io);
  addControlCommands(flow, io);
  addChangeCommands(flow, io);
  examples(flow, [
    ['millrace flow validate expense.yaml', 'check it'],
    [`millrace flow test expense.yaml --input '{"manager": "meg"}' --skip 8d`, 'try it, without a server'],
    ['millrace flow apply -f expense.yaml', 'make it known to the server'],
    [`millrace flow start expense --input '{"manager": "meg"}'`, 'start an execution; prints its id'],
    ['millrace flow show 01890a5d-… --follow', 'watch it'],
    ['millrace flow executions --status incident', 'what needs repair; `flow show` prints how'],
  ]);
}
