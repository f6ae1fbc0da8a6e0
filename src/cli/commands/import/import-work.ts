/** What the steps of an import share: the source, the server, the plan, and the flags. */
import type { Source } from '../../../waterwheel/source.ts';
import type { Server } from '../../session/server.ts';
import type { Plan } from './plan.ts';

export interface ImportOptions {
  readonly db: string;
  readonly project: readonly string[];
  readonly dryRun: boolean;
  readonly start: boolean;
  readonly overwrite: boolean;
  /** What becomes of runs that are under way in Waterwheel at the start; undefined: they must have ended. */
  readonly underWay: 'again' | 'leave' | undefined;
}

export interface ImportWork {
  readonly server: Server;
  readonly source: Source;
  readonly plan: Plan;
  readonly options: ImportOptions;
  readonly progress: (text: string, last: boolean) => void;
}
