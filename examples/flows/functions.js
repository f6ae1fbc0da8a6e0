/**
 * Functions for the flows of this folder. They only pretend: nothing is paid, and no mail is sent.
 *
 *     npx millrace up --functions examples/flows/functions.js
 *
 * A function gets the input of its task, and may be called twice if a machine fails: `key` is the same then, so that the service that
 * it calls can recognise the repetition. What it returns is the result of the task. An error that it throws is the task's error, with
 * its `code`.
 */

/** An error with a code, which `on_error` and `retry` can name. */
function problem(code, message) {
  return Object.assign(new Error(message), { code });
}

export default {
  // expense.yaml
  remind({ to, link }, { log }) {
    log(`to ${to}: please decide, at ${link}`);
  },
  pay({ amount }, { key, log }) {
    if (amount > 1000) throw problem('limit_exceeded', `the bank refuses to pay ${amount} at once`);
    log(`paid ${amount}, with the idempotency key ${key}`);
    return { paid: amount };
  },
  tell({ to, why }, { log }) {
    log(`to ${to}: your expense was rejected: ${why}`);
  },

  // order.yaml
  'reserve-stock'({ items }) {
    return { id: `r-${items.length}`, items };
  },
  'release-stock'({ id }, { log }) {
    log(`released ${id}`);
  },
  charge({ amount, card }, { key }) {
    if (card === 'expired') throw problem('card_expired', 'the card has expired');
    return { id: `p-${key}`, amount };
  },
  refund({ payment }, { log }) {
    log(`refunded ${payment}`);
  },
  'tell-customer'({ why }, { log }) {
    log(`your order has failed: ${why}`);
  },

  // thumbnails.yaml
  thumbnail({ url, width }) {
    if (url.endsWith('.txt')) throw problem('no_image', `${url} is no image`);
    return { url: `${url}?width=${width}` };
  },
  'publish-index'({ pages }, { log }) {
    log(`the index has ${pages.length} pages`);
    return { pages: pages.length };
  },

  // export.yaml: the export takes ten seconds
  'start-export'() {
    return { id: new Date().toISOString() };
  },
  'export-status'({ id }) {
    const isDone = Date.now() - Date.parse(id) >= 10_000;
    return isDone ? { state: 'done', url: `https://exports.example/${id}` } : { state: 'running' };
  },

  // morning-digest.yaml
  collect({ since }) {
    return [`a story of ${since}`];
  },
  'send-digest'({ stories }, { log }) {
    log(`sent ${stories.length} stories`);
  },
};
