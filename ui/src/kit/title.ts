/** What the browser's tab says. Which tenant it is about goes without saying for `default`. */
import { useEffect } from 'react';
import { tenantName } from '../client.ts';

const house = tenantName === 'default' ? 'millrace' : `${tenantName} · millrace`;

export function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title === undefined ? house : `${title} · ${house}`;
  }, [title]);
}
