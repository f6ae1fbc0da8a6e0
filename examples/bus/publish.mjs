/**
 * Publishes an event and repeats the request until the bus has it. It needs Node and nothing else.
 *
 *   MILLRACE_URL=http://127.0.0.1:8080 MILLRACE_KEY=mrk_… node examples/bus/publish.mjs orders https://shop.example/orders/1 update '{"total": 5}'
 *
 * 1. The answer comes after the commit: an event that has a number is not lost.
 * 2. A request without an answer may have been accepted. All repetitions carry the same `Idempotency-Key`, so that the event is
 *    stored once.
 * 3. Only a request that was refused (4xx other than 429) ends it: its body is at fault, and repeating it would not help.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

const [topic, url, type = 'update', data] = process.argv.slice(2);
const { MILLRACE_URL: server = 'http://127.0.0.1:8080', MILLRACE_KEY: key } = process.env;
if (topic === undefined || url === undefined || key === undefined) {
  console.error('usage: MILLRACE_KEY=… node publish.mjs TOPIC URL [TYPE] [DATA]');
  process.exit(2);
}
const body = JSON.stringify({ type, url, ...(data === undefined ? {} : { data: JSON.parse(data) }) });
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': randomUUID() };

async function publish() {
  for (let attempt = 1; ; attempt++) {
    let waitMs = Math.min(10_000, 200 * 2 ** attempt);
    try {
      const response = await fetch(`${server}/bus/topics/${topic}`, { method: 'POST', headers, body });
      const answer = await response.json();
      if (response.ok) return answer.id;
      if (response.status < 500 && response.status !== 429) throw new Error(answer.detail, { cause: 'refused' });
      waitMs = Number(response.headers.get('retry-after') ?? 0) * 1_000 || waitMs;
    } catch (error) {
      if (error.cause === 'refused') throw error;
    }
    if (attempt === 10) throw new Error('the bus does not answer');
    await pause(waitMs);
  }
}

try {
  console.log(await publish());
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
