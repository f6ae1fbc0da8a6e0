/**
 * The watcher: a small process at the other end of a pipe. When the worker dies, even by kill -9, the pipe closes, and
 * the watcher ends the tasks that were left (I4): softly, and after a grace hard.
 *
 * 1. A task is announced before it is spawned and its group told after, so there is no moment at which a task is
 *    unknown: one without a group is found by the mark in its environment.
 * 2. It leads a session of its own and ignores the soft signals, so what ends the worker's group does not end it.
 * 3. It is a shell, not a Node process: 0.4 MB instead of 40 (proportional set size, measured).
 * 4. It owns the folder of the worker's pipes, if there is one, and removes it when the worker is gone.
 * 5. When it ends before the worker does another takes over; while none stays they come ever more slowly, and the log
 *    says so once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { delayMs, reconnect } from '../../kernel/backoff.ts';
import { type Log, silent } from '../../kernel/log.ts';
import type { Service } from '../../kernel/service.ts';
import { markVariable } from './task-processes.ts';

// $1: grace in tenths of a second, $2: folder to remove, or nothing. `open` holds mark:group items; marks hold no blanks.
const script = `
trap '' HUP INT TERM
open=
forget() {
  rest=
  for item in $open; do
    case $item in "$1":*) ;; *) rest="$rest $item" ;; esac
  done
  open=$rest
}
while read -r verb mark group; do
  case $verb in
    +) open="$open $mark:" ;;
    =) forget "$mark"; open="$open $mark:$group" ;;
    -) forget "$mark" ;;
  esac
done
[ -z "$2" ] || rm -rf -- "$2"
[ -n "$open" ] || exit 0
marks=
for item in $open; do
  marks="$marks\${marks:+
}${markVariable}=\${item%%:*}"
done
groups=' '
for item in $open; do groups="$groups\${item#*:} "; done
# those with a mark, and those whose session (the fourth word behind the name) a task began; not those in its group
strays() {
  marked=" $(grep -lsF -e "$marks" /proc/[0-9]*/environ 2>/dev/null | tr '\\n' ' ')"
  for file in /proc/[0-9]*/stat; do
    pid=\${file#/proc/}
    pid=\${pid%/stat}
    read -r stat 2>/dev/null < "$file" || continue
    set -- \${stat##*) }
    case $1 in Z|X) continue ;; esac
    case $groups in *" $3 "*) continue ;; esac
    case $marked$groups in *" /proc/$pid/environ "*|*" $4 "*) echo "$pid" ;; esac
  done
}
strike() {
  for item in $open; do
    group=\${item#*:}
    [ -n "$group" ] && kill -s "$1" -- "-$group" 2>/dev/null && kill -s CONT -- "-$group" 2>/dev/null
  done
  for pid in $(strays); do
    kill -s "$1" "$pid" 2>/dev/null && kill -s CONT "$pid" 2>/dev/null
  done
}
alive() {
  for item in $open; do
    group=\${item#*:}
    [ -n "$group" ] && kill -s 0 -- "-$group" 2>/dev/null && return 0
  done
  [ -n "$(strays)" ]
}
strike TERM
left=$1
while [ "$left" -gt 0 ] && alive; do
  sleep 0.1 || sleep 1
  left=$((left - 1))
done
# twice: for what was being forked while we looked
strike KILL
strike KILL
`;

export interface WatcherOptions {
  readonly graceMs: number;
  readonly folder?: string;
  readonly path: string;
  readonly log?: Log | undefined;
  readonly shell?: string;
}

/** One that lived for longer was ended by somebody; one that did not cannot stay, or somebody means it. */
const soonMs = 5_000;
/** So many in a row that did not stay are told. */
const toldAt = 2;

export class Watcher implements Service {
  readonly name = 'watcher';
  readonly #options: WatcherOptions;
  readonly #open = new Map<string, number | undefined>();
  #process: ChildProcess | undefined;
  #sinceMs = 0;
  /** How many in a row did not stay. */
  #failures = 0;
  /** Set between the end of one and the start of the next. */
  #successor: NodeJS.Timeout | undefined;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.#process) return;
    const child = this.#spawn();
    try {
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve);
        child.once('error', reject);
      });
    } catch (error) {
      this.#callOff();
      this.#process = undefined;
      throw error;
    }
  }

  /** Lets the watcher go. It still ends what was not told to have ended. */
  async stop(): Promise<void> {
    if (this.#successor) this.#succeed();
    this.#callOff();
    const child = this.#process;
    this.#process = undefined;
    child?.stdin?.end();
  }

  /** The watcher's process id, while it is there. */
  get pid(): number | undefined {
    return this.#successor ? undefined : this.#process?.pid;
  }

  /** Before the spawn. */
  announce(mark: string): void {
    this.#open.set(mark, undefined);
    this.#tell(`+ ${mark}`);
  }

  /** After it. */
  began(mark: string, groupId: number): void {
    this.#open.set(mark, groupId);
    this.#tell(`= ${mark} ${groupId}`);
  }

  ended(mark: string): void {
    this.#open.delete(mark);
    this.#tell(`- ${mark}`);
  }

  #tell(line: string): void {
    this.#process?.stdin?.write(`${line}\n`);
  }

  #spawn(): ChildProcess {
    const { graceMs, folder = '', path, shell = '/bin/sh' } = this.#options;
    const args = ['-c', script, 'millrace-watcher', String(Math.ceil(graceMs / 100)), folder];
    const env = { PATH: path };
    const child = spawn(shell, args, { detached: true, stdio: ['pipe', 'ignore', 'ignore'], cwd: '/', env });
    this.#process = child;
    this.#sinceMs = performance.now();
    child.stdin?.on('error', () => {}); // it is gone, and that is heard below
    child.on('error', (error) => this.#replace(child, error.message));
    child.once('exit', (code, signal) => this.#replace(child, `it ended with ${signal ?? `exit code ${code}`}`));
    child.unref();
    return child;
  }

  /** It was ended, or could not be started: another takes over what is open. */
  #replace(gone: ChildProcess, why: string): void {
    if (this.#process !== gone || this.#successor) return;
    if (performance.now() - this.#sinceMs >= soonMs) this.#failures = 0;
    this.#later(why);
  }

  #later(why: string): void {
    this.#failures++;
    if (this.#failures === toldAt) {
      const { log = silent } = this.#options;
      log.warn({ why }, 'watcher ended; without it, tasks outlive a worker that dies; retrying');
    }
    this.#successor = setTimeout(() => this.#succeed(), delayMs(reconnect, this.#failures - 1)).unref();
  }

  #callOff(): void {
    clearTimeout(this.#successor);
    this.#successor = undefined;
  }

  #succeed(): void {
    this.#callOff();
    try {
      this.#spawn();
    } catch (error) {
      return this.#later(String(error)); // such as when there is no memory for it
    }
    for (const [mark, groupId] of this.#open) this.#tell(groupId === undefined ? `+ ${mark}` : `= ${mark} ${groupId}`);
  }
}
