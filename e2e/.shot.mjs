import chromiumBinary from "@sparticuz/chromium"; import { chromium } from "playwright-core";
const [url, out, scheme, w, h] = process.argv.slice(2);
const b = await chromium.launch({ executablePath: await chromiumBinary.executablePath(), args: chromiumBinary.args.filter((a) => a !== "--single-process"), headless: true });
const p = await (await b.newContext({ viewport: { width: +(w ?? 1200), height: +(h ?? 1400) }, colorScheme: scheme ?? "dark" })).newPage();
p.on("console", (m) => console.log("console", m.type(), m.text())); p.on("pageerror", (e) => console.log("error", e.message));
const t = Date.now(); await p.goto(url); console.log("load", Date.now() - t); await p.waitForTimeout(500);
await p.screenshot({ path: out }); await b.close();
