/**
 * Steps of a task's start that are executed after its process has become the task's user, under all restrictions: entering its
 * folder, and setting variables that the dynamic loader and the C library obey.
 *
 * Otherwise root would enter the folder, which may pass through folders that are closed to the task. And with such a variable
 * (LD_PRELOAD) a task's code would run inside the programs that restrict it (`task-separation.ts`), before they do.
 */
import { realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** The variables that glibc removes from the environment of a setuid program, except TMPDIR, which no program here uses. */
const unsafeVariables =
  /^(?:LD_[A-Z0-9_]+|GCONV_PATH|GETCONF_DIR|GLIBC_TUNABLES|HOSTALIASES|LOCALDOMAIN|LOCPATH|MALLOC_[A-Z_]+|NIS_PATH|NLSPATH|RESOLV_HOST_CONF|RES_OPTIONS|TZDIR)$/;

const [heldPrefix, folderVariable] = ['MILLRACE_LATE_', 'MILLRACE_LATE_FOLDER'];

export interface Launch {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The same task, with these steps executed by a shell right before its command. */
export function takeLate({ command, env }: Launch, folder: string | undefined): Launch {
  const held = Object.keys(env).filter((name) => unsafeVariables.test(name));
  if (held.length === 0 && folder === undefined) return { command, env };
  const early = Object.fromEntries(
    Object.entries(env).map(([name, value]) => [held.includes(name) ? heldPrefix + name : name, value]),
  );
  const enter = `cd -- "$${folderVariable}" || exit 126; unset ${folderVariable}`;
  const steps = [
    ...(folder === undefined ? [] : [enter]),
    ...held.map((name) => `export ${name}="$${heldPrefix}${name}"; unset ${heldPrefix}${name}`),
    'exec "$@"',
  ];
  return {
    command: ['/bin/sh', '-c', steps.join('; '), 'sh', ...command],
    env: folder === undefined ? early : { ...early, [folderVariable]: folder },
  };
}

/**
 * Whether a user can reach a path through all folders above it, by their modes. It is only used for messages: the system decides
 * when the shell of the task enters the folder.
 */
export function isReachable(path: string, { uid, gid }: { readonly uid: number; readonly gid: number }): boolean {
  for (let at = withoutLinks(dirname(path)); ; at = dirname(at)) {
    const found = statSync(at, { throwIfNoEntry: false });
    if (found !== undefined && (found.mode & (found.uid === uid ? 0o100 : found.gid === gid ? 0o010 : 0o001)) === 0)
      return false;
    if (at === dirname(at)) return true;
  }
}

function withoutLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
