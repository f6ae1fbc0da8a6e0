/**
 * The calculator against an oracle that shares no code with it: it asks Intl what the clock shows at every minute of a
 * window, reads the expression with a few lines of its own, and looks for each wall time in turn.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileSchedule, instantsBetween } from './schedule.ts';

const minuteMs = 60_000;
const windowMinutes = 3 * 24 * 60;
const guardMinutes = 26 * 60;

/** Around a change of clocks, and around none. */
const places: readonly (readonly [string, string])[] = [
  ['Europe/Berlin', '2024-03-30T00:00Z'],
  ['Europe/Berlin', '2024-10-26T00:00Z'],
  ['America/New_York', '2024-03-09T00:00Z'],
  ['America/New_York', '2024-11-02T00:00Z'],
  ['Australia/Lord_Howe', '2024-04-05T12:00Z'],
  ['Australia/Lord_Howe', '2024-10-04T12:00Z'],
  ['Asia/Kolkata', '2024-02-28T00:00Z'],
  ['UTC', '2023-12-30T00:00Z'],
  ['America/Sao_Paulo', '2018-11-03T00:00Z'],
  ['Asia/Beirut', '2022-10-29T00:00Z'],
  ['Pacific/Apia', '2011-12-29T00:00Z'],
];

/** A wall time taken apart, and its sortable text. */
interface Wall {
  readonly text: string;
  readonly fields: readonly [minute: number, hour: number, day: number, month: number, weekday: number];
}

interface Minute {
  readonly instantMs: number;
  readonly wall: Wall;
}

function wallOf(text: string): Wall {
  const date = new Date(`${text.replace(' ', 'T')}Z`);
  const time = [date.getUTCMinutes(), date.getUTCHours()] as const;
  return { text, fields: [...time, date.getUTCDate(), date.getUTCMonth() + 1, date.getUTCDay()] };
}

function wallText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
}

/** What the clock shows at each minute. */
function clock(zone: string, fromMs: number, minutes: number): Minute[] {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
  return Array.from({ length: minutes }, (_, i) => {
    const instantMs = fromMs + i * minuteMs;
    return { instantMs, wall: wallOf(format.format(instantMs)) };
  });
}

/** The members of a field. */
function members(field: string, min: number, max: number): Set<number> {
  const found = new Set<number>();
  for (const item of field.split(',')) {
    const [range = '', step = '1'] = item.split('/');
    const [low = '', high] = range.split('-');
    const first = low === '*' ? min : Number(low);
    const last = low === '*' || (high === undefined && item.includes('/')) ? max : Number(high ?? low);
    for (let value = first; value <= last; value += Number(step)) found.add(value);
  }
  return found;
}

function reader(cron: string): (wall: Wall) => boolean {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = cron.split(' ');
  const [minutes, hours] = [members(minute, 0, 59), members(hour, 0, 23)] as const;
  const [days, months, weekdays] = [members(day, 1, 31), members(month, 1, 12), members(weekday, 0, 7)] as const;
  const both = day.startsWith('*') || weekday.startsWith('*');
  return ({ fields: [mi, h, d, mo, w] }) => {
    const [byDay, byWeekday] = [days.has(d), weekdays.has(w) || (w === 0 && weekdays.has(7))];
    const isDay = both ? byDay && byWeekday : byDay || byWeekday;
    return isDay && minutes.has(mi) && hours.has(h) && months.has(mo);
  };
}

interface Place {
  readonly zone: string;
  readonly fromMs: number;
  readonly minutes: readonly Minute[];
  /** Every wall time that anyone could name, shown or not, with the moment that it runs at. */
  readonly walls: readonly { readonly wall: Wall; readonly runsAt: number | undefined }[];
}

function placeOf(zone: string, fromMs: number): Place {
  const minutes = clock(zone, fromMs - guardMinutes * minuteMs, windowMinutes + 2 * guardMinutes);
  const firstShown = new Map<string, number>();
  for (const { wall, instantMs } of minutes) if (!firstShown.has(wall.text)) firstShown.set(wall.text, instantMs);
  const texts = [...firstShown.keys()].sort();
  const [first = '', last = ''] = [texts[0], texts.at(-1)];
  const walls = [];
  for (let text = first; text <= last; text = wallText(Date.parse(`${text.replace(' ', 'T')}Z`) + minuteMs)) {
    const runsAt = firstShown.get(text) ?? minutes.find((minute) => minute.wall.text > text)?.instantMs;
    walls.push({ wall: wallOf(text), runsAt });
  }
  return { zone, fromMs, minutes, walls };
}

function oracle(cron: string, { minutes, walls }: Place): number[] {
  const isNamed = reader(cron);
  const hours = cron.split(' ')[1] ?? '';
  if (hours.includes('*') || hours.includes('/')) {
    return minutes.filter(({ wall }) => isNamed(wall)).map(({ instantMs }) => instantMs);
  }
  const instants = walls.filter(({ wall }) => isNamed(wall)).flatMap(({ runsAt }) => runsAt ?? []);
  return [...new Set(instants)].sort((a, b) => a - b);
}

function field(min: number, max: number, star: number): fc.Arbitrary<string> {
  const number = fc.integer({ min, max });
  const range = fc.tuple(number, number).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 2, max: Math.ceil(max / 2) });
  const stepped = fc.tuple(fc.oneof(fc.constant('*'), range), step).map(([base, by]) => `${base}/${by}`);
  const list = fc.uniqueArray(number, { minLength: 1, maxLength: 4 }).map((numbers) => numbers.join(','));
  return fc.oneof({ weight: star, arbitrary: fc.constant('*') }, { weight: 3, arbitrary: list }, range, stepped);
}

/** Restricted hours lean to the small ones, in which clocks go. */
const expression = fc
  .tuple(field(0, 59, 1), fc.oneof(field(0, 22, 2), field(0, 4, 1)), field(1, 31, 8), field(1, 12, 20), field(0, 7, 8))
  .map((fields) => fields.join(' '))
  .filter((cron) => cron.split(' ')[1] !== '0-23');

const clocks = places.map(([zone, from]) => placeOf(zone, Date.parse(from)));

test('every expression in every zone gives the instants that a look at the clock gives', { timeout: 30_000 }, () => {
  fc.assert(
    fc.property(fc.constantFrom(...clocks), expression, (place, cron) => {
      const { zone, fromMs } = place;
      const toMs = fromMs + windowMinutes * minuteMs;
      const spec = { startMs: fromMs - 86_400_000 * 400, endMs: null, periodMs: null, timezone: zone };
      let schedule;
      try {
        schedule = compileSchedule({ ...spec, cron });
      } catch {
        fc.pre(false); // an expression that never fires, such as 31 February
        return;
      }
      const expected = oracle(cron, place).filter((instant) => instant >= fromMs && instant < toMs);
      expect([...instantsBetween(schedule, fromMs, toMs)], `${cron} in ${zone}`).toEqual(expected);
    }),
    { numRuns: 400 },
  );
});

test('whole days keep the wall-clock time, or the first there is after it', { timeout: 30_000 }, () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...clocks),
      fc.integer({ min: 0, max: 1439 }),
      fc.integer({ min: 1, max: 2 }),
      ({ zone, fromMs, minutes, walls }, minute, days) => {
        const startMs = fromMs - guardMinutes * minuteMs + minute * minuteMs;
        const spec = { startMs, endMs: null, periodMs: days * 86_400_000, cron: null, timezone: zone };
        const startWall = minutes.find(({ instantMs }) => instantMs === startMs)?.wall.text ?? '';
        const shown = [1, 2, 3].flatMap((n) => {
          const text = wallText(Date.parse(`${startWall.replace(' ', 'T')}Z`) + n * spec.periodMs);
          return walls.find(({ wall }) => wall.text === text)?.runsAt ?? [];
        });
        const toMs = fromMs + windowMinutes * minuteMs;
        const expected = [...new Set([startMs, ...shown])].filter((instant) => instant < toMs);
        const found = [...instantsBetween(compileSchedule(spec), startMs, toMs)];
        expect(found.slice(0, expected.length)).toEqual(expected);
      },
    ),
    { numRuns: 300 },
  );
});

/** Mostly in the hours in which clocks go. */
const standpoint = fc.oneof(fc.integer({ min: 0, max: windowMinutes * minuteMs }), {
  weight: 4,
  arbitrary: fc.integer({ min: 20 * 60 * minuteMs, max: 32 * 60 * minuteMs }),
});

test('what comes next does not depend on where one stands', () => {
  fc.assert(
    fc.property(fc.constantFrom(...clocks), expression, standpoint, (place, cron, at) => {
      const { zone, fromMs } = place;
      let schedule;
      try {
        schedule = compileSchedule({ startMs: 0, endMs: null, periodMs: null, cron, timezone: zone });
      } catch {
        return;
      }
      const all = [...instantsBetween(schedule, fromMs, fromMs + windowMinutes * minuteMs)];
      const [next] = instantsBetween(schedule, fromMs + at, fromMs + windowMinutes * minuteMs);
      expect(next).toBe(all.find((instant) => instant >= fromMs + at));
    }),
    { numRuns: 1_000 },
  );
});
