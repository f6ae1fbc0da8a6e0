/**
 * A class of requests that decides which of them are upgrades.
 *
 * A server with a listener for upgrades treats every request with an `Upgrade` header as one, and Node 20 has no option to
 * change that (`shouldUpgradeCallback` came with 24.9). Node reads the property `upgrade` once the headers are parsed.
 *
 * An upgrade also stops the parsing of its connection at once, which nothing else does: after `socket.destroy()` Node parses
 * the rest of the 64 KiB that it has read, up to 2,000 requests. So a connection with too many waiting requests is cut this way.
 */
import { IncomingMessage } from 'node:http';

export function makeIncoming(
  isUpgrade: (request: IncomingMessage, asksForUpgrade: boolean) => boolean,
): typeof IncomingMessage {
  return class extends IncomingMessage {
    #asksForUpgrade = false;

    get upgrade(): boolean {
      return #asksForUpgrade in this && isUpgrade(this, this.#asksForUpgrade);
    }

    set upgrade(asked: boolean) {
      // Node's constructor sets it too, before this class has its fields
      if (#asksForUpgrade in this) this.#asksForUpgrade = asked;
    }
  };
}
