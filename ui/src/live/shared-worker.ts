/**
 * The worker that all tabs of a browser share, so that together they hold one connection: a browser opens at most six to
 * a server, and a seventh tab would wait for ever. It lives while a tab lives. A tab says `hello` when it begins to follow
 * and `bye` when it stops; `again` when the session has changed and the stream must be asked for anew.
 */
import { ChangeStream, type Told } from './change-stream.ts';

export type Said = 'hello' | 'bye' | 'again';

/** Recent messages are repeated to a new tab, because data may have changed between its first reads and its `hello`. */
const rememberedMs = 3_000;

const tabs = new Set<MessagePort>();
let remembered: { readonly told: Told; readonly at: number }[] = [];
// the name says which tenant's stream it is
const stream = new ChangeStream(`${self.name}/api/changes`, tellAll);

function tellAll(told: Told): void {
  for (const tab of tabs) tab.postMessage(told);
  const since = performance.now() - rememberedMs;
  remembered = remembered.filter(({ at }) => at > since);
  if (told.kind === 'digest') remembered.push({ told, at: performance.now() });
}

function hear(tab: MessagePort, said: Said): void {
  if (said === 'hello') {
    tabs.add(tab);
    tab.postMessage({ kind: 'state', state: stream.state } satisfies Told);
    for (const { told, at } of remembered) if (at > performance.now() - rememberedMs) tab.postMessage(told);
  } else if (said === 'bye') {
    tabs.delete(tab);
  }
  if (said === 'again' || tabs.size === 0) stream.stop();
  if (tabs.size > 0) stream.start();
}

globalThis.addEventListener('connect', (event) => {
  const [tab] = (event as MessageEvent).ports;
  tab?.addEventListener('message', ({ data }: MessageEvent<Said>) => hear(tab, data));
  tab?.start();
});
