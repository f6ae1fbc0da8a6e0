/** A page of the installation: for all but root there is no such page. */
import type { ReactNode } from 'react';
import { NotFound } from '../kit/not-found.tsx';
import { useMe } from './session.ts';

export function RootOnly({ children }: { readonly children: ReactNode }) {
  return useIsRoot() ? children : <NotFound />;
}

export function useIsRoot(): boolean {
  return useMe().data?.role === 'root';
}
