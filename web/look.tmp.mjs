import { startServer, startBrowser } from './e2e/harness.mjs';
const server = await startServer(); const browser = await startBrowser();
const views = process.argv.slice(2).length ? JSON.parse(process.argv[2]) : [
 ['start', ''], ['learn3', '#/learn?chapter=head'], ['pizza', '#/follow?text=I%20love%20pizza%20with%20extra%20cheese%20and'], ['english', '#/follow?model=english&text=He%20put%20his%20hands%20in%20his'],
 ['follow', '#/follow?text=American%20shrew%20mole'] ];
for (const [name, link] of views) for (const [w,dark] of [[1280,false],[390,true]]) {
  const c = await browser.newContext({ viewport: { width: w, height: 900 }, colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce' });
  const page = await c.newPage(); page.on('pageerror', (e) => console.log(name, String(e)));
  await page.goto(`${server.address}/${link}`); await page.locator('main h1').first().waitFor({timeout:60000}); await page.waitForTimeout(6000);
  await page.screenshot({ path: `/work/wt/tmp/look/${name}-${w}.png`, fullPage: false }); await c.close();
}
await browser.close(); await server.stop();
