/** Cursors of lists by time: the time and the id of a page's last item, as text. */
import { badRequest } from '../context.ts';

export const uuidCursor = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
export const numberCursor = /^\d{1,15}$/;

export function cursorOf({ at, id }: { readonly at: Date; readonly id: string | number }): string {
  return `${at.getTime()}_${id}`;
}

export function parseCursor(cursor: string | undefined, idPattern: RegExp): { at: Date; id: string } | undefined {
  if (cursor === undefined) return undefined;
  const [time = '', id = ''] = cursor.split('_');
  if (/^\d{1,15}$/.test(time) && idPattern.test(id)) return { at: new Date(Number(time)), id };
  throw badRequest('query.cursor', 'is not `next` of a page');
}
