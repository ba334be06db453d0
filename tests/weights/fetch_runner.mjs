// Reads files by web/runtime/fetch.js and says, a line of JSON for each address, how many bytes of which digest, or
// the error's name. Arguments: the folder of fetch.js, how many milliseconds to wait for an answer, then addresses.
import { createHash } from "node:crypto";

const [folder, timeout, ...urls] = process.argv.slice(2);
const { Remote } = await import(`${folder}/fetch.js`);
await Promise.all(
  urls.map(async (url) => {
    const remote = new Remote(url, {}, Number(timeout), 1);
    try {
      const parts = [await remote.read(0, 200_000), await remote.read(200_000, 1_000_000)];
      const digest = createHash("sha256");
      for (const bytes of parts) digest.update(bytes);
      console.log(JSON.stringify({ url, digest: digest.digest("hex") }));
    } catch (error) {
      console.log(JSON.stringify({ url, error: error.name, message: error.message }));
    }
  }),
);
process.exit(0);
