/** Lists what a migration to the version of an engine would do, on a connection of its own. */
import type { Engine } from '../../src/contract/engine.ts';
import type { Address } from '../../src/postgres/address.ts';
import { onConnection } from '../../src/tenants/drained-work.ts';

export function listPending(address: Address, engine: Engine): Promise<string[]> {
  return onConnection(address, (client) => engine.pending(client));
}
