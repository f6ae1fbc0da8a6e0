/** Installing and upgrading: an engine's migrations in a transaction in which no engine touches the tenant. */
import { Client } from 'pg';
import type { Engine } from '../contract/engine.ts';
import { type Address, clientConfig } from '../postgres/address.ts';
import { drained, type Drained, graceMs } from '../postgres/drained.ts';

/** Answers the names of what was applied. `onBegin` is told the transaction before anybody has to leave. */
export async function migrateTenant(
  address: Address,
  engine: Engine,
  onBegin: (who: Drained) => Promise<void> = async () => {},
): Promise<string[]> {
  const client = new Client(clientConfig(address, 'millrace migration'));
  client.on('error', () => {});
  await client.connect();
  try {
    return await drained(client, { onBegin, graceMs }, (inner) => engine.migrate(inner));
  } finally {
    await client.end().catch(() => {});
  }
}

/** Whether `migrateTenant` would find anything to do. Locks nothing: a start of many processes disturbs nobody. */
export async function pendingMigrations(address: Address, engine: Engine): Promise<string[]> {
  const client = new Client(clientConfig(address, 'millrace migration'));
  client.on('error', () => {});
  await client.connect();
  try {
    return await engine.pending(client);
  } finally {
    await client.end().catch(() => {});
  }
}
