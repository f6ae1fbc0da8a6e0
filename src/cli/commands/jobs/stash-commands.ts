/** `millrace stash`: stores values that tasks may read. A value is read from a file or stdin, never from the command line. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import { z } from 'zod';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { listStashNames } from '../../session/pages.ts';
import { findProject } from '../../session/references.ts';
import { type Session, verb } from '../../session/session.ts';
import { oneLine } from '../../print/width.ts';

const flags = z.object({ project: z.string().optional() });
const setFlags = z.object({ ...flags.shape, file: z.string().optional() });
type Flags = z.output<typeof flags>;

const projectFlag = [
  '--project <name>',
  'use the stash of this project instead of the one that all projects share',
] as const;

export function addStashCommands(program: Command, io: Io): void {
  const stash = program.command('stash').description('Store secrets and other small values for tasks, encrypted.');
  const list = stash.command('list').description('List names. Only tasks can read the values.');
  list.option(...projectFlag).action(verb(io, flags, listStash));
  examples(list, [['millrace stash list --project shop', 'of one project']]);
  const set = stash
    .command('set')
    .description('Store the exact bytes of a value from --file or stdin.')
    .argument('<name>', 'the name by which tasks read it')
    .option(...projectFlag)
    .option('--file <file>', 'the file that holds the value; - or no --file: stdin')
    .action(verb(io, setFlags, setStash));
  examples(set, [
    ['printf %s "$PASSWORD" | millrace stash set db-password', 'printf adds no newline, echo does'],
    ['millrace stash set ca --file ca.pem --project shop', 'from a file, for one project'],
  ]);
  const remove = stash.command('delete').description('Remove a value.').argument('<name>', 'as it was set');
  remove.option(...projectFlag).action(verb(io, flags, deleteStash));
  examples(remove, [['millrace stash delete db-password', 'tasks that need it will fail']]);
}

async function listStash(session: Session, _: readonly string[], { project }: Flags): Promise<void> {
  const server = await session.connect();
  const owner = project === undefined ? undefined : (await findProject(server, project)).id;
  const names = await listStashNames(server, owner);
  session.out.answer(names, () => {
    for (const name of names) session.out.line(oneLine(name));
  });
}

async function setStash(
  session: Session,
  [key = '']: readonly string[],
  options: z.output<typeof setFlags>,
): Promise<void> {
  const body = await readValue(session.io, options.file);
  const server = await session.connect();
  if (options.project === undefined) {
    await server.tenant('PUT /api/stash/{key}', { params: { key }, body });
  } else {
    const { id } = await findProject(server, options.project);
    await server.tenant('PUT /api/projects/{id}/stash/{key}', { params: { id, key }, body });
  }
  session.out.answer({ name: key, bytes: body.length }, () => session.out.line(`${key} is set (${body.length} bytes)`));
}

async function readValue(io: Io, file: string | undefined): Promise<Uint8Array> {
  if (file !== undefined && file !== '-') return readFile(resolve(io.cwd, file));
  const typed = io.stdin.isTTY === true;
  if (typed) io.stderr.write('type the value, then Enter and Ctrl-D:\n');
  const bytes = await buffer(io.stdin);
  return typed && bytes.at(-1) === 10 ? bytes.subarray(0, -1) : bytes;
}

async function deleteStash(session: Session, [key = '']: readonly string[], { project }: Flags): Promise<void> {
  const server = await session.connect();
  if (project === undefined) {
    await server.tenant('DELETE /api/stash/{key}', { params: { key } });
  } else {
    const { id } = await findProject(server, project);
    await server.tenant('DELETE /api/projects/{id}/stash/{key}', { params: { id, key } });
  }
  session.out.answer({ name: key, deleted: true }, () => session.out.line(`${key} is deleted`));
}
