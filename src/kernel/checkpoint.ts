/**
 * Checkpoints: named places between two steps at which a test can make a process die as if by kill -9, to prove that
 * nothing is lost or doubled at any moment. In production none is armed, and passing one costs a comparison.
 *
 * Each room declares its checkpoints and passes them through the function that `declareCheckpoints` returns. Passing a name
 * that the room has not declared does not compile. `app/checkpoints.ts` lists them by the role whose process passes them.
 */

export interface Checkpoints<N extends string> {
  readonly names: readonly N[];
  /** Passes a checkpoint: the process dies here if it is armed. */
  readonly checkpoint: (name: N) => void;
}

export function declareCheckpoints<const N extends string>(...names: readonly N[]): Checkpoints<N> {
  return { names, checkpoint: pass };
}

export interface Armed {
  readonly name: string;
  /** The passage at which the process dies; 1 is the first. */
  readonly passage: number;
}

/** Reads `name` or `name:passage`. A name has at least one dot. Returns undefined for any other text. */
export function parseArmed(text: string): Armed | undefined {
  const [, name, passage = '1'] = /^([a-z]+(?:\.[a-z]+)+)(?::([1-9]\d{0,8}))?$/.exec(text) ?? [];
  return name === undefined ? undefined : { name, passage: Number(passage) };
}

let armed: Armed | undefined;
let passages = 0;

/** Called once, when the process starts. */
export function arm(checkpointToDieAt: Armed): void {
  armed = checkpointToDieAt;
}

function pass(name: string): void {
  if (armed?.name !== name) return;
  passages += 1;
  // SIGKILL instead of exit: no handler runs, nothing is flushed, and the kernel closes the sockets
  if (passages === armed.passage) process.kill(process.pid, 'SIGKILL');
}
