// The pages of what model calls were sent.

import { offerPromptSearch } from "./prompt_search.js";

offerPromptSearch(document.querySelector(".prompts-page").dataset.session);
