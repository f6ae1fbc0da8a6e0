/**
 * How the web interface is built: one page at `/`, everything from files of its own, so that it lives under a
 * `default-src 'self'` policy (no inline script or style, no data: address). In development the API is a server on
 * 127.0.0.1:8080; writes carry its origin, because it checks that.
 */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const server = 'http://127.0.0.1:8080';
const served = '^/(t/[^/]+/)?(api|int-api|bus|internal|docs|openapi\\.json|healthz|readyz|metrics)(/|$|\\?)';

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react()],
  build: { outDir: 'dist', emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy: { [served]: { target: server, changeOrigin: true, headers: { origin: server } } } },
});
