/**
 * The watcher: a small process at the other end of a pipe. When the worker dies, even by kill -9, the pipe closes, and the watcher
 * ends the remaining tasks (I4): softly, and hard after a grace.
 *
 * 1. A task is announced before it is spawned, and its group after, so there is no moment at which a task is unknown: one
 *    without a group is found by the mark in its environment.
 * 2. It leads a session of its own and ignores the soft signals, so that signals to the worker's group do not end it.
 * 3. It is a shell, not a Node process: 0.4 MB instead of 40 MB (proportional set size, measured).
 * 4. It owns the folder of the worker's pipes, if there is one, and removes it after the worker has ended.
 * 5. If it ends before the worker does, another one replaces it. If several end at once, the pauses grow, and the log says so
 *    once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { delayMs, reconnect } from '../../kernel/backoff.ts';
import { type Log, silent } from '../../kernel/log.ts';
import type { Service } from '../../kernel/service.ts';
import { markVariable } from './task-processes.ts';

// $1: grace in tenths of a second, $2: folder to remove, or empty. `open` holds mark:group items; marks contain no blanks.
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

/** A watcher that ran for longer was killed by a user; one that did not cannot run, or is killed on purpose. */
const soonMs = 5_000;
/** The number of such failures in a row after which they are logged. */
const loggedFailures = 2;

export class Watcher implements Service {
  readonly name = 'watcher';
  readonly #options: WatcherOptions;
  readonly #open = new Map<string, number | undefined>();
  #process: ChildProcess | undefined;
  #sinceMs = 0;
  /** The number of watchers in a row that ended at once. */
  #failures = 0;
  /** Set between the end of one watcher and the start of the next. */
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

  /** Stops the watcher. It still ends the tasks that have not been reported as ended. */
  async stop(): Promise<void> {
    if (this.#successor) this.#succeed();
    this.#callOff();
    const child = this.#process;
    this.#process = undefined;
    child?.stdin?.end();
  }

  /** The watcher's process id, while it runs. */
  get pid(): number | undefined {
    return this.#successor ? undefined : this.#process?.pid;
  }

  /** Call it before the spawn. */
  announce(mark: string): void {
    this.#open.set(mark, undefined);
    this.#send(`+ ${mark}`);
  }

  /** Call it after the spawn. */
  began(mark: string, groupId: number): void {
    this.#open.set(mark, groupId);
    this.#send(`= ${mark} ${groupId}`);
  }

  ended(mark: string): void {
    this.#open.delete(mark);
    this.#send(`- ${mark}`);
  }

  #send(line: string): void {
    this.#process?.stdin?.write(`${line}\n`);
  }

  #spawn(): ChildProcess {
    const { graceMs, folder = '', path, shell = '/bin/sh' } = this.#options;
    const args = ['-c', script, 'millrace-watcher', String(Math.ceil(graceMs / 100)), folder];
    const env = { PATH: path };
    const child = spawn(shell, args, { detached: true, stdio: ['pipe', 'ignore', 'ignore'], cwd: '/', env });
    this.#process = child;
    this.#sinceMs = performance.now();
    child.stdin?.on('error', () => {}); // it has ended, which is handled below
    child.on('error', (error) => this.#replace(child, error.message));
    child.once('exit', (code, signal) => this.#replace(child, `it ended with ${signal ?? `exit code ${code}`}`));
    child.unref();
    return child;
  }

  /** The watcher was killed, or could not be started: another one takes over the open tasks. */
  #replace(gone: ChildProcess, why: string): void {
    if (this.#process !== gone || this.#successor) return;
    if (performance.now() - this.#sinceMs >= soonMs) this.#failures = 0;
    this.#later(why);
  }

  #later(why: string): void {
    this.#failures++;
    if (this.#failures === loggedFailures) {
      const { log = silent } = this.#options;
      log.warn({ why }, 'watcher ended, retrying; without it, tasks outlive a worker that dies');
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
      return this.#later(String(error)); // for example, not enough memory
    }
    for (const [mark, groupId] of this.#open) this.#send(groupId === undefined ? `+ ${mark}` : `= ${mark} ${groupId}`);
  }
}
