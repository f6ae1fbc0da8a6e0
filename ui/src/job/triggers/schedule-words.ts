/**
 * A schedule in words, where it is simple: periods, and the cron expressions that people mostly write. What it does not
 * know it leaves to the expression itself; a wrong sentence would be worse than none.
 */
const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

/** `every day`, `every 15 minutes`, `every 1 hour 30 minutes`. */
export function periodWords(seconds: number): string {
  let left = seconds;
  const parts = units.flatMap(([unit, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count === 0 ? [] : [{ unit, count }];
  });
  const [first, ...rest] = parts;
  if (left > 0 || first === undefined) return `every ${seconds} seconds`;
  if (rest.length === 0 && first.count === 1) return `every ${first.unit}`;
  return `every ${parts.map(({ unit, count }) => `${count} ${unit}${count === 1 ? '' : 's'}`).join(' ')}`;
}

const macros: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const;
const months = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const;

/** Undefined for expressions that are not simple. */
export function cronWords(expression: string): string | undefined {
  const text = macros[expression.trim().toLowerCase()] ?? expression.trim();
  const fields = text.split(/\s+/);
  // six fields begin with the second
  if (fields.length === 6 && fields.shift() !== '0') return undefined;
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields;
  if (fields.length !== 5) return undefined;
  const isAnyDay = day === '*' && month === '*' && weekday === '*';
  if (hour === '*' || hour.startsWith('*/')) return isAnyDay ? withinDay(minute, hour) : undefined;
  const times = timesOf(minute, hour);
  const days = times === undefined ? undefined : daysOf(day, month, weekday);
  return days === undefined ? undefined : `${days} at ${times}`;
}

function withinDay(minute: string, hour: string): string | undefined {
  const step = stepOf(minute, 60);
  if (hour === '*' && step !== undefined) return step === 1 ? 'every minute' : `every ${step} minutes`;
  const at = numberIn(minute, 0, 59);
  const hours = stepOf(hour, 24);
  if (at === undefined || hours === undefined) return undefined;
  const rhythm = hours === 1 ? 'every hour' : `every ${hours} hours`;
  return at === 0 ? `${rhythm}, on the hour` : `${rhythm}, ${at === 1 ? '1 minute' : `${at} minutes`} past`;
}

/** A step that does not divide the whole has an uneven gap at its end, which is not `every n`. */
function stepOf(field: string, whole: number): number | undefined {
  if (field === '*') return 1;
  const step = numberIn(/^\*\/(\d+)$/.exec(field)?.[1] ?? '', 1, whole);
  return step !== undefined && whole % step === 0 ? step : undefined;
}

function timesOf(minute: string, hour: string): string | undefined {
  const at = numberIn(minute, 0, 59);
  const hours = hour.split(',').map((part) => numberIn(part, 0, 23));
  if (at === undefined || hours.includes(undefined)) return undefined;
  return listed(hours.map((each) => `${pad(each ?? 0)}:${pad(at)}`));
}

function daysOf(day: string, month: string, weekday: string): string | undefined {
  if (weekday !== '*') return day === '*' && month === '*' ? weekdayWords(weekday) : undefined;
  if (day === '*') return month === '*' ? 'every day' : undefined;
  const date = numberIn(day, 1, 31);
  if (date === undefined) return undefined;
  if (month === '*') return `on day ${date} of every month`;
  const number = numberIn(month, 1, 12);
  return number === undefined ? undefined : `every ${date} ${months[number - 1]}`;
}

function weekdayWords(field: string): string | undefined {
  if (/^(mon-fri|1-5)$/i.test(field)) return 'on weekdays';
  const days = field.split(',').map((part) => {
    const number = numberIn(part, 0, 7);
    if (number !== undefined) return weekdays[number % 7];
    return weekdays.find((name) => name.slice(0, 3).toLowerCase() === part.toLowerCase());
  });
  return days.includes(undefined) ? undefined : `on ${listed(days.map((name) => `${name}s`))}`;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

function numberIn(text: string, least: number, most: number): number | undefined {
  if (!/^\d{1,4}$/.test(text)) return undefined;
  const number = Number(text);
  return number >= least && number <= most ? number : undefined;
}

function pad(number: number): string {
  return String(number).padStart(2, '0');
}
