/** `millrace session`: lists and ends browser sessions. */
import type { Command } from 'commander';
import { z } from 'zod';
import { isId } from '../../../kernel/id.ts';
import { UsageError } from '../../session/exit.ts';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { showTime } from '../../print/output.ts';
import * as pages from '../../session/pages.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

const endFlags = z.object({ all: z.boolean().default(false) });

export function addSessionCommands(program: Command, io: Io): void {
  const session = program.command('session').description('List and end browser sessions (needs the root key).');
  const list = session.command('list').description('List open sessions, the most recently used first.');
  examples(list, [['millrace session list', 'who is signed in, with which key, and since when']]);
  list.action(verb(io, noOptions, listSessions));
  const end = session
    .command('end')
    .description('End a session: its browser is signed out, and its streams are closed.')
    .argument('[id]', 'as `millrace session list` shows it')
    .option('--all', 'end every session')
    .action(verb(io, endFlags, endSessions));
  examples(end, [
    ['millrace session end 01890a5d-…', 'by its id'],
    ['millrace session end --all', 'all users must sign in again'],
  ]);
}

async function listSessions(session: Session): Promise<void> {
  const server = await session.connect();
  const items = await pages.listSessions(server);
  session.out.answer(items, () => {
    session.out.table(
      [
        { title: 'ID' },
        { title: 'WHO', flexible: true },
        { title: 'KEY', flexible: true },
        { title: 'ROLE' },
        { title: 'TENANT', flexible: true },
        { title: 'SINCE' },
        { title: 'LAST USED' },
        { title: 'UNTIL' },
      ],
      items.map(({ id, actor, key, role, tenant, created_at, used_at, expires_at }) => [
        id,
        actor,
        key.name,
        role,
        tenant,
        showTime(created_at),
        showTime(used_at),
        showTime(expires_at),
      ]),
    );
  });
}

async function endSessions(
  session: Session,
  [id]: readonly string[],
  { all }: z.output<typeof endFlags>,
): Promise<void> {
  if (all === (id !== undefined)) throw new UsageError('name one session by its id, or all with --all');
  if (id === undefined) return endAll(session);
  if (!isId(id))
    throw new UsageError(`${JSON.stringify(id)} is not the id of a session; millrace session list shows them`);
  const server = await session.connect();
  await server.gateway('DELETE /api/sessions/{id}', { params: { id } });
  session.out.answer({ id, ended: true }, () => session.out.line(`session ${id} has ended`));
}

async function endAll(session: Session): Promise<void> {
  const server = await session.connect();
  const answer = await server.gateway('DELETE /api/sessions');
  session.out.answer(answer, () => session.out.line(`sessions ended: ${answer.ended}`));
}
