/**
 * The text of a log that grows for ever, in blocks. Only the last block ever changes, so a page need draw no other
 * again; beyond `mostBlocks` (one megabyte) the oldest go. Colours and other terminal codes are taken out, also where a
 * chunk ends in the middle of one.
 */
export interface LogText {
  readonly blocks: readonly LogBlock[];
  /** The beginning of a terminal code whose end has not come yet. */
  readonly carry: string;
  /** Whether blocks at the beginning have gone. */
  readonly isCut: boolean;
}

interface LogBlock {
  readonly number: number;
  readonly text: string;
}

const blockChars = 16_384;
const mostBlocks = 64;

export const noText: LogText = { blocks: [], carry: '', isCut: false };

const escape = '\u001B';
const bell = '\u0007';
/** Colours and cursor moves (`ESC [ … letter`), titles and links (`ESC ] … BEL`), and the short ones. */
const codes = new RegExp(
  `${escape}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${bell}${escape}]*(?:${bell}|${escape}\\\\)|[@-Z\\\\^_])`,
  'g',
);
const unfinishedCode = new RegExp(`${escape}(?:\\[[0-?]*[ -/]*|\\][^${bell}${escape}]{0,2000}${escape}?)?$`);

export function append(log: LogText, chunk: string): LogText {
  const raw = (log.carry + chunk).replaceAll(codes, '');
  const carry = unfinishedCode.exec(raw)?.[0] ?? '';
  const text = raw.slice(0, raw.length - carry.length).replaceAll('\r\n', '\n');
  if (text === '') return { ...log, carry };

  const last = log.blocks.at(-1);
  const isOpen = last !== undefined && last.text.length < blockChars;
  const kept = isOpen ? log.blocks.slice(0, -1) : log.blocks;
  const first = isOpen ? last.number : (last?.number ?? -1) + 1;
  const blocks = [...kept, ...cut((isOpen ? last.text : '') + text, first)];
  return { blocks: blocks.slice(-mostBlocks), carry, isCut: log.isCut || blocks.length > mostBlocks };
}

/** Cuts text into blocks after the first line that fills one; a line too long for any block is cut where it is. */
function cut(text: string, firstNumber: number): LogBlock[] {
  const blocks: LogBlock[] = [];
  let start = 0;
  while (start < text.length) {
    const newline = text.indexOf('\n', start + blockChars - 1);
    const end = newline === -1 || newline - start > 2 * blockChars ? start + 2 * blockChars : newline + 1;
    blocks.push({ number: firstNumber + blocks.length, text: text.slice(start, end) });
    start = end;
  }
  return blocks;
}
