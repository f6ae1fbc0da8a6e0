/**
 * The installation's root key. Its source is the environment or a file in the home. Each start activates that key and
 * retires the previous one. Sessions and links made with the old key may belong to an intruder, so every session and every
 * unspent link ends with it.
 */
import { everyone } from '../../contract/channels.ts';
import { append, keyTopic } from '../../events/append.ts';
import { newId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';
import type { WakeHub } from '../../postgres/wake.ts';
import { hashOf } from './callers.ts';
import { insertKey, installationActor, retireInstallationKeys, reviveKey } from '../installation/queries.ts';
import { deleteLinks, endSessions } from './session-queries.ts';

export async function enforceRootKey(
  { control, time, hub }: { control: Db; time: Time; hub: Pick<WakeHub, 'send'> },
  secret: string,
): Promise<void> {
  const at = new Date(time.now());
  const hash = hashOf(secret);
  const isReplaced = await control.transaction(async (tx) => {
    await insertKey(tx, { id: newId(), name: 'root', role: 'root', tenantId: null, hash, at, by: installationActor });
    await reviveKey(tx, hash);
    if ((await retireInstallationKeys(tx, hash, at)) === 0) return false;
    const sessions = await endSessions(tx, undefined);
    await deleteLinks(tx);
    const body = { name: 'root', sessions_ended: sessions };
    await append(tx, keyTopic, [{ type: 'key.replaced', subject: null, body }], { actor: installationActor, at });
    return true;
  });
  // other processes cache keys for seconds, and have streams open
  if (isReplaced) hub.send('revoked', everyone);
}
