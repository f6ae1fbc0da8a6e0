/**
 * A receiver of events that verifies signatures (Standard Webhooks) and handles each batch once. It needs Node and nothing else.
 *
 *   WEBHOOK_SECRET=whsec_… PORT=4000 node examples/bus/receive.mjs
 *
 * 1. A request without a valid signature of the last five minutes is answered with 401, and its body is not read as events.
 * 2. Delivery is at least once, and a batch keeps its `webhook-id` when it is sent again. A batch that was handled before is
 *    acknowledged and not handled again. This example remembers ids in memory; keep them beside your data in a real service.
 * 3. Any 2xx accepts the whole batch. Another status makes Millrace send it again later; 400, 413 or 422 refuses its content.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const secret = process.env.WEBHOOK_SECRET ?? '';
const port = Number(process.env.PORT ?? 4000);
const toleranceSeconds = 300;
const handled = new Set();

if (!secret.startsWith('whsec_')) {
  console.error('set WEBHOOK_SECRET to what `millrace subscriber secret` printed');
  process.exit(2);
}
const key = Buffer.from(secret.slice('whsec_'.length), 'base64');

function isGenuine(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers;
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= toleranceSeconds)) return false;
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  // while a secret is exchanged for another, a delivery carries a signature of each
  return signatures.split(' ').some((entry) => {
    const [version, text = ''] = entry.split(',');
    const given = Buffer.from(text, 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function handle(event) {
  console.log(`${event.id} ${event.topic} ${event.type} ${event.url} ${JSON.stringify(event.data ?? {})}`);
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (!isGenuine(request.headers, body)) return response.writeHead(401).end('the signature is not valid\n');
  const id = request.headers['webhook-id'];
  if (handled.has(id)) console.log(`batch ${id} again`);
  else for (const event of JSON.parse(body)) handle(event);
  handled.add(id);
  response.writeHead(204).end();
});
server.listen(port, '127.0.0.1', () => console.log(`listening at http://127.0.0.1:${server.address().port}/events`));
