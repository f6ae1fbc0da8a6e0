/**
 * The watcher: a shell at the other end of a pipe (`pipe-shell.ts`). When the worker dies, even by kill -9, the watcher ends the
 * remaining tasks (I4): softly, and hard after a grace.
 *
 * 1. A task is announced before it is spawned, and its group after, so there is no moment at which a task is unknown: one
 *    without a group is found by the mark in its environment.
 * 2. It owns the folder of the worker's pipes, if there is one, and removes it after the worker and its tasks have ended.
 */
import type { Log } from '../../kernel/log.ts';
import type { Service } from '../../kernel/service.ts';
import { PipeShell } from './pipe-shell.ts';
import { markVariable } from './task-processes.ts';

// $1: grace in tenths of a second, $2: folder to remove, or empty. `open` holds mark:group items; marks contain no blanks.
const script = `
trap '' HUP INT TERM
folder=$2
open=
remove() {
  [ -z "$folder" ] || rm -rf -- "$folder"
}
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
[ -n "$open" ] || { remove; exit 0; }
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
remove
`;

export interface WatcherOptions {
  readonly graceMs: number;
  readonly folder?: string;
  readonly path: string;
  readonly log?: Log | undefined;
  readonly shell?: string;
}

export class Watcher implements Service {
  readonly name = 'watcher';
  readonly #open = new Map<string, number | undefined>();
  readonly #shell: PipeShell;

  constructor({ graceMs, folder = '', path, shell, log }: WatcherOptions) {
    this.#shell = new PipeShell({
      script,
      args: [String(Math.ceil(graceMs / 100)), folder],
      env: { PATH: path },
      shell,
      log,
      about: 'watcher ended, retrying; without it, tasks outlive a worker that dies',
      state: () =>
        Array.from(this.#open, ([mark, group]) => (group === undefined ? `+ ${mark}` : `= ${mark} ${group}`)),
    });
  }

  start(): Promise<void> {
    return this.#shell.start();
  }

  /** Stops the watcher. It still ends the tasks that have not been reported as ended. */
  stop(): Promise<void> {
    return this.#shell.stop();
  }

  /** The watcher's process id, while it runs. */
  get pid(): number | undefined {
    return this.#shell.pid;
  }

  /** Call it before the spawn. */
  announce(mark: string): void {
    this.#open.set(mark, undefined);
    this.#shell.send(`+ ${mark}`);
  }

  /** Call it after the spawn. */
  began(mark: string, groupId: number): void {
    this.#open.set(mark, groupId);
    this.#shell.send(`= ${mark} ${groupId}`);
  }

  ended(mark: string): void {
    this.#open.delete(mark);
    this.#shell.send(`- ${mark}`);
  }
}
