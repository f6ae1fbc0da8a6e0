/** `millrace flow`: documents of flows, and their executions. */
import type { Command } from 'commander';
import type { Io } from '../../session/io.ts';
import { addFlowDocumentCommands } from './document-commands.ts';

export function addFlowCommands(program: Command, io: Io): void {
  const flow = program.command('flow').description('Check, apply, start, watch and repair flows.');
  addFlowDocumentCommands(flow, io);
}
