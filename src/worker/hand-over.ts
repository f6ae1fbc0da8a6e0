/**
 * Sends reports, and offers free places with them: the answer may contain runs for these places. The child of an ended run
 * usually arrives this way, without a poll.
 *
 * Places wait for the answer. Reports of a tenant whose last answer was slow offer no places.
 */
import { largestHandOver } from '../contract/engine.ts';
import type { ClaimedRun, Failure, Places as WirePlaces, ReportAnswer, ReportRequest } from '../contract/wire.ts';
import type { Places } from './places.ts';
import type { ReporterOptions } from './reporter.ts';

/**
 * How long an ended run keeps its place until its report is sent, so that the report can offer it. Also the longest answer to a
 * report that places wait for. A process takes some milliseconds to start, so the additional idle time is small.
 */
export const keepPlaceMs = 50;

/** The API sends no runs with an answer that takes longer than 100 ms. A run that comes after this time is returned. */
const maxPlaceWaitMs = 250;

export type Lanes = Omit<WirePlaces, 'free'>;

interface Options {
  readonly places: Places;
  /** The lanes of which runs with a place, or without, may be claimed now; undefined: none. */
  readonly lanesOf: (takesPlace: boolean) => Lanes | undefined;
  readonly send: (message: Pick<ReportRequest, 'reports' | 'places'>, signal: AbortSignal) => Promise<ReportAnswer>;
  /** `isLate`: its place may have been taken meanwhile. */
  readonly accept: (runs: readonly ClaimedRun[], how: { takesPlace: boolean; isLate: boolean }) => void;
  /** Places wait no longer, although the answer has not come. */
  readonly onFree: () => void;
  /** How long places wait for the answer. */
  readonly waitMs?: number;
  /** The present time, in milliseconds. */
  readonly now: () => number;
}

interface Offer {
  readonly takesPlace: boolean;
  readonly places: WirePlaces;
  /** Ends the wait of the places. */
  readonly settle: () => void;
}

export function handOver({
  places,
  lanesOf,
  send,
  accept,
  now,
  onFree,
  waitMs = maxPlaceWaitMs,
}: Options): ReporterOptions['send'] {
  const slowTenants = new Set<string>();
  return async (reports, signal): Promise<readonly Failure[]> => {
    const isSlow = reports.some(({ tenant }) => slowTenants.has(tenant));
    const offers = isSlow ? [] : [false, true].flatMap((takesPlace) => offerPlaces(places, takesPlace, lanesOf));
    const sentAt = now();
    const wait = waitForAnswer(offers, { waitMs, onFree });
    let answer: ReportAnswer;
    try {
      answer = await send({ reports, places: offers.map((offer) => offer.places) }, signal);
    } finally {
      wait.end();
      const tookLong = now() - sentAt > keepPlaceMs;
      for (const { tenant } of reports) slowTenants[tookLong ? 'add' : 'delete'](tenant);
    }
    offers.forEach(({ takesPlace }, i) => accept(answer.runs?.[i] ?? [], { takesPlace, isLate: wait.isOver }));
    return answer.failed;
  };
}

/** The places wait until the end, or until their time is over: then polls may ask for them. */
function waitForAnswer(
  offers: readonly Offer[],
  { waitMs, onFree }: Pick<Options, 'onFree'> & { waitMs: number },
): { readonly isOver: boolean; readonly end: () => void } {
  let isSettled = false;
  let isOver = false;
  const settle = (): void => {
    if (!isSettled) for (const offer of offers) offer.settle();
    isSettled = true;
  };
  const timer = setTimeout(() => {
    isOver = true;
    settle();
    onFree();
  }, waitMs);
  return {
    get isOver() {
      return isOver;
    },
    end: () => {
      clearTimeout(timer);
      settle();
    },
  };
}

function offerPlaces(places: Places, takesPlace: boolean, lanesOf: Options['lanesOf']): Offer[] {
  const lanes = lanesOf(takesPlace);
  if (lanes === undefined) return [];
  const { free, settle } = takesPlace ? places.report() : { free: largestHandOver, settle: () => {} };
  return free === 0 ? [] : [{ takesPlace, places: { free, ...lanes }, settle }];
}
