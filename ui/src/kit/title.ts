/** The title of the browser's tab. It names the tenant, unless that is `default`. */
import { useEffect } from 'react';
import { tenantName } from '../client.ts';

const house = tenantName === 'default' ? 'millrace' : `${tenantName} · millrace`;

export function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title === undefined ? house : `${title} · ${house}`;
  }, [title]);
}
