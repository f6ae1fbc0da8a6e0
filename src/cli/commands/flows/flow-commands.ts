/** `millrace flow`: documents of flows, definitions on the server, and their executions. */
import type { Command } from 'commander';
import type { Io } from '../../session/io.ts';
import { addChangeCommands } from './change-commands.ts';
import { addControlCommands } from './control-commands.ts';
import { addDefinitionCommands } from './definition-commands.ts';
import { addFlowDocumentCommands } from './document-commands.ts';
import { addExecutionCommands } from './execution-commands.ts';
import { addStart } from './start.ts';

export function addFlowCommands(program: Command, io: Io): void {
  const flow = program.command('flow').description('Apply, start, watch, repair, change and test flows.');
  addFlowDocumentCommands(flow, io);
  addDefinitionCommands(flow, io);
  addStart(flow, io);
  addExecutionCommands(flow, io);
  addControlCommands(flow, io);
  addChangeCommands(flow, io);
}
