/** The stream of changes in this tab: through the worker that all tabs share, or a stream of its own. */
import { ChangeStream, type LiveState, type Told } from './change-stream.ts';
import type { Said } from './shared-worker.ts';

interface Line {
  readonly say: (said: Said) => void;
}

interface FeedOptions {
  /** The prefix of the paths of the tenant's API. */
  readonly base: string;
  readonly onTold: (told: Told) => void;
}

export class Feed {
  readonly #line: Line;
  readonly #onTold: (told: Told) => void;
  readonly #listeners = new Set<() => void>();
  #state: LiveState = 'connecting';

  constructor({ base, onTold }: FeedOptions) {
    this.#onTold = onTold;
    const tell = (told: Told): void => {
      if (told.kind === 'state') this.#become(told.state);
      onTold(told);
    };
    this.#line = typeof SharedWorker === 'undefined' ? ownLine(base, tell) : sharedLine(base, tell);
  }

  readonly start = (): void => {
    this.#line.say('hello');
    addEventListener('pagehide', this.#leave);
    addEventListener('pageshow', this.#comeBack);
  };

  readonly stop = (): void => {
    removeEventListener('pagehide', this.#leave);
    removeEventListener('pageshow', this.#comeBack);
    this.#line.say('bye');
  };

  /** The session has changed: every tab is to find out whether it still may listen. */
  readonly again = (): void => this.#line.say('again');

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly state = (): LiveState => this.#state;

  readonly #leave = (): void => this.#line.say('bye');

  /** The page was restored from the browser's back/forward cache, where it received nothing. */
  readonly #comeBack = (event: PageTransitionEvent): void => {
    if (!event.persisted) return;
    this.#line.say('hello');
    this.#onTold({ kind: 'digest', digest: { all: true } });
  };

  #become(state: LiveState): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

function sharedLine(base: string, tell: (told: Told) => void): Line {
  const worker = new SharedWorker(new URL('./shared-worker.ts', import.meta.url), { type: 'module', name: base });
  worker.port.addEventListener('message', ({ data }: MessageEvent<Told>) => tell(data));
  worker.port.start();
  return { say: (said) => worker.port.postMessage(said) };
}

function ownLine(base: string, tell: (told: Told) => void): Line {
  const stream = new ChangeStream(`${base}/api/changes`, tell);
  return {
    say: (said) => {
      if (said !== 'hello') stream.stop();
      if (said !== 'bye') stream.start();
    },
  };
}
