/** The entry: styles, the cache of answers, and the app. */
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './tokens.css';
import './base.css';
import './kit/kit.css';
import './kit/table.css';
import { makeQueryClient } from './query-client.ts';
import { App } from './shell/app.tsx';
import { applyTheme } from './kit/theme.ts';

applyTheme();

const root = document.querySelector('#root');
if (root === null) throw new Error('index.html has no #root');

createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={makeQueryClient()}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
