/**
 * Functions of the seeded flows (`flows.ts`). Tests decide what becomes of them by files in the folder that their input names: the mail
 * server is down until `mail` exists, and pictures are made once `pictures` exists.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @type {(code: string, message: string) => Error} */
function problem(code, message) {
  return Object.assign(new Error(message), { code });
}

const pauseMs = 100;

async function until(path, signal) {
  while (!existsSync(path) && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, pauseMs));
}

export default {
  'reserve-stock': ({ items }) => ({ id: `r-${items.length}` }),
  'release-stock': () => null,
  /** @type {(input: { amount: number, card: string }, context: { attempt: number }) => unknown} */
  charge({ amount, card }, { attempt }) {
    if (card === 'expired') throw problem('card_expired', 'the card has expired');
    if (attempt === 1) throw problem('timeout', 'the bank does not answer');
    return { id: 'p-1', amount };
  },
  refund: () => null,
  /** @type {(input: { folder: string, to: string }) => unknown} */
  invoice({ folder, to }) {
    if (!existsSync(join(folder, 'mail')))
      throw problem('smtp_failed', 'the mail server refuses the message: mailbox full');
    return { sent: to };
  },
  async thumbnail({ folder, url }, { signal }) {
    await until(join(folder, 'pictures'), signal);
    return { url: `${url}?width=320` };
  },
  remind({ folder, id, link }) {
    writeFileSync(join(folder, `link-${id}`), link);
    return null;
  },
  pay: () => ({ paid: true }),
  tell: () => null,
};
