"""Open sets of subjects, so that the answer depends on the kind of question and not on its subject.

The lists are examples. `filler` mixes them with made-up words, because a visitor's subject is on no list.
"""

import re

import words


def _lines(text):
    return [part.strip() for part in text.replace("\n", " ").split(",") if part.strip()]


PROGLANGS = _lines("""python, javascript, java, c, c++, c#, rust, go, php, ruby, swift, kotlin, typescript, bash, sql, html, css, perl, lua,
haskell, r, matlab, scala, dart, assembly, powershell, react, vue, node, django, excel, vba, fortran, cobol, lisp, julia, jquery, mysql,
postgres, c sharp, js, ts, arduino, latex, numpy, pandas, golang, elixir, solidity, zig, svelte, flutter""")
LANGUAGES = _lines("""Spanish, French, German, Italian, Portuguese, Dutch, Polish, Russian, Chinese, Japanese, Korean, Arabic, Hindi, Turkish,
Greek, Latin, Swedish, Danish, Norwegian, Finnish, Czech, Hungarian, Romanian, Hebrew, Thai, Vietnamese, Ukrainian, Bengali, Urdu,
Swahili, Irish, Welsh, Catalan, Basque, Mandarin, Cantonese, Persian, Indonesian, Tagalog, Klingon, Esperanto, Icelandic, Serbian,
Croatian, Tamil, Bavarian, Swiss German, Malay, Zulu, Afrikaans, Punjabi, Bulgarian, Slovak, Lithuanian, Mongolian, Gaelic""")
COUNTRIES = _lines("""Mexico, Argentina, Chile, Colombia, Venezuela, Bolivia, Paraguay, Uruguay, Ecuador, Nigeria, Ghana, Ethiopia,
Tanzania, Uganda, Zambia, Zimbabwe, Angola, Senegal, Mali, Sudan, Somalia, Libya, Algeria, Tunisia, Morocco, Madagascar, Iceland,
Ukraine, Romania, Bulgaria, Serbia, Croatia, Slovenia, Slovakia, Latvia, Lithuania, Estonia, Belarus, Georgia, Armenia, Azerbaijan,
Kazakhstan, Uzbekistan, Nepal, Bhutan, Bangladesh, Pakistan, Afghanistan, Iran, Iraq, Syria, Jordan, Israel, Lebanon, Oman, Qatar,
Kuwait, Yemen, Thailand, Vietnam, Laos, Cambodia, Malaysia, Singapore, Indonesia, the Philippines, Taiwan, New Zealand, Fiji, Jamaica,
Haiti, Panama, Guatemala, Honduras, Nicaragua, Costa Rica, Malta, Cyprus, Luxembourg, Monaco, Andorra, Albania, Kosovo, Bosnia, Chad,
Niger, Togo, Benin, Cameroon, Gabon, Congo, Rwanda, Burundi, Namibia, Botswana, Malawi, Myanmar, Sri Lanka, the Maldives, Belize, Guyana,
Suriname, Texas, California, Florida, Ohio, Alaska, Hawaii, Bavaria, Scotland, Wales, Catalonia, Greenland, Tibet, the USA, America,
Burkina Faso, Saudi Arabia, North Korea, South Africa, El Salvador, Turkmenistan, Kyrgyzstan, Tajikistan, Moldova, Lesotho, Vanuatu""")
PEOPLE = _lines("""Barack Obama, Donald Trump, Joe Biden, Elon Musk, Bill Gates, Steve Jobs, Mark Zuckerberg, Jeff Bezos, Beyonce, Rihanna,
Justin Bieber, Ed Sheeran, Adele, Lady Gaga, Madonna, Michael Jackson, Elvis Presley, Freddie Mercury, Eminem, Drake, Kanye West, Shakira,
Lionel Messi, Cristiano Ronaldo, LeBron James, Michael Jordan, Roger Federer, Serena Williams, Usain Bolt, Tom Brady, Pele, Maradona,
Napoleon, Julius Caesar, Cleopatra, Alexander the Great, Genghis Khan, Winston Churchill, Nelson Mandela, Gandhi, Abraham Lincoln,
George Washington, Queen Elizabeth, King Charles, Princess Diana, Marie Curie, Nikola Tesla, Charles Darwin, Stephen Hawking, Galileo,
Alan Turing, Ada Lovelace, Linus Torvalds, Mozart, Beethoven, Bach, Picasso, Van Gogh, Rembrandt, Goethe, Kafka, Tolstoy, Hemingway,
Jane Austen, Charles Dickens, J.K. Rowling, Stephen King, Agatha Christie, Tolkien, Tom Hanks, Brad Pitt, Angelina Jolie, Tom Cruise,
Leonardo DiCaprio, Emma Watson, Scarlett Johansson, Will Smith, Keanu Reeves, Oprah Winfrey, Kim Kardashian, Greta Thunberg, the pope,
Angela Merkel, Emmanuel Macron, Vladimir Putin, Xi Jinping, Karl Marx, Sigmund Freud, Plato, Aristotle, Socrates, Confucius, Buddha,
Jesus, Moses, Harry Potter, Batman, Superman, Spiderman, Darth Vader, Gandalf, Sherlock Holmes, Mickey Mouse, Mario, Pikachu, Homer Simpson,
James Bond, Santa Claus, Taylor, Billie Eilish, Dua Lipa, Harry Styles, MrBeast, PewDiePie, Jackie Chan, Bruce Lee, Muhammad Ali,
Mike Tyson, Neymar, Mbappe, Sam Altman, Satoshi Nakamoto, Marilyn Monroe, Charlie Chaplin, Frida Kahlo, Rosa Parks, Martin Luther King""")
BRANDS = _lines("""google, apple, microsoft, amazon, netflix, facebook, tiktok, youtube, twitter, instagram, spotify, tesla, bmw, toyota, nike,
adidas, coca cola, pepsi, mcdonalds, starbucks, ikea, samsung, sony, nintendo, playstation, xbox, minecraft, fortnite, whatsapp, iphone,
android, windows, linux, ubuntu, mac, chatgpt, reddit, discord, uber, airbnb, lego, disney, nvidia, intel, amd, openai, ferrari, rolex""")
TOPICS = _lines("""quantum mechanics, black holes, photosynthesis, gravity, evolution, the french revolution, the roman empire, climate change,
inflation, the stock market, cryptocurrency, bitcoin, blockchain, democracy, capitalism, communism, the cold war, the middle ages,
world history, the vikings, the pyramids, ancient egypt, the renaissance, dna, genetics, vaccines, viruses, the human brain, the heart,
the immune system, diabetes, cancer, yoga, meditation, buddhism, islam, christianity, hinduism, the bible, mythology, zeus, astrology,
astronomy, mars, saturn, the big bang, dark matter, string theory, relativity, thermodynamics, electricity, magnetism, nuclear power,
solar energy, wind power, recycling, plastic, the ozone layer, volcanoes, earthquakes, tsunamis, tornadoes, clouds, hail, rainbows, dinosaurs,
sharks, the amazon rainforest, coral reefs, football, basketball, cricket rules, tennis, golf, chess openings, poker, formula 1, the olympics,
jazz, opera, classical music, hip hop, the beatles, ballet, cubism, photography, architecture, philosophy, ethics, logic, psychology, dreams,
economics, taxes, mortgages, insurance, marketing, supply and demand, law, human rights, the constitution, the eu, the un, nato, brexit,
calculus, algebra, geometry, statistics, probability, prime numbers, fractions, infinity, trigonometry, matrices, machine learning, 5g,
transformers, the web, wifi, bluetooth, databases, operating systems, compilers, encryption, hacking, docker, kubernetes,
git, cloud computing, quantum computers, self driving cars, space travel, nasa, aliens, time travel, wine, coffee, tea, cheese making,
sourdough, vegan food, sushi, gardening, knitting, fishing, hiking, the gold standard, pandemics, the plague, slavery, feminism, nietzsche,
existentialism, stoicism, karma, feng shui, crop circles, atlantis, the bermuda triangle, ufos, bigfoot, vampires, witches, alchemy,
semiconductors, combustion engines, airplanes, submarines, steam engines, glaciers, osmosis, mitosis, ph values, acids, atoms, molecules,
electrons, photons, lasers, x-rays, sound waves, tectonic plates, the water cycle, the carbon cycle, the periodic table, epigenetics""")
EVENTS = _lines("""the french revolution, the vietnam war, the civil war, the russian revolution, the industrial revolution, the moon mission,
the fall of the berlin wall, the black death, the titanic disaster, the american revolution, the crusades, the battle of hastings, d-day,
the gulf war, 9/11, the great depression, the cuban missile crisis, chernobyl, the great fire of london, the korean war, the world cup 2018,
the olympics in athens, the thirty years war, the battle of waterloo, the spanish civil war, the boer war, the gold rush, prohibition,
the reformation, the peloponnesian war, the first crusade, the war of roses, the stone age, the ice age, the iron age, apartheid, watergate""")
ODD_THINGS = _lines("""flux capacitor, sextant, gargoyle, trebuchet, astrolabe, samovar, didgeridoo, oscilloscope, catamaran, fjord, haiku, sonnet,
thermostat, carburetor, resistor, capacitor, turbine, periscope, sundial, gyroscope, barometer, stethoscope, defibrillator, zeppelin, abacus,
metronome, oboe, theremin, banjo, kimono, sari, kilt, toga, sombrero, fez, beret, monocle, quasar, nebula, pulsar, comet, asteroid, meteor,
solstice, equinox, isotope, enzyme, hormone, protein, vitamin, mitochondrion, ribosome, neuron, synapse, axolotl, platypus, narwhal, okapi,
pangolin, capybara, mammoth, dodo, mortgage, dividend, hedge fund, subsidy, tariff, monopoly, cartel, referendum, senate, parliament,
filibuster, subpoena, alibi, patent, trademark, syllogism, paradox, metaphor, oxymoron, palindrome, acronym, gerund, adverb, dna test,
mri scan, ct scan, crankshaft, gearbox, sourdough starter, roux, souffle, flying buttress, minaret, pagoda, igloo, yurt, gondola, rickshaw""")
TITLES = _lines("""Star Wars, Harry Potter, the Lord of the Rings, Titanic, the Matrix, Game of Thrones, Breaking Bad, Friends, the Bible,
Romeo and Juliet, Faust, the Odyssey, Moby Dick, 1984, Dune, Twilight, the Hobbit, Frozen, Avatar, Inception, Interstellar, Bohemian Rhapsody,
Imagine, Hey Jude, Thriller, Minecraft, Zelda, the Simpsons, South Park, Jaws, Alien, the Godfather, Pulp Fiction, Forrest Gump, Shrek,
Don Quixote, War and Peace, the Great Gatsby, Macbeth, Les Miserables, Casablanca, Oppenheimer, Barbie, Stranger Things, the Office""")
INVENTIONS = _lines("""the telephone, the light bulb, the wheel, the internet, the radio, television, the computer, the airplane, the car,
the steam engine, gunpowder, paper, the printing press, the compass, the bicycle, the piano, the camera, the battery, the microscope,
the zipper, the toothbrush, the elevator, dynamite, the telescope, the toaster, the pencil, pizza, ice cream, basketball, the world wide web""")
TASKS = _lines("""reverse a list, sort numbers, read a file, add two numbers, print hello world, check a palindrome, find the maximum,
count words, parse json, scrape a website, send an email, open a window, draw a circle, play a sound, connect to a database, find duplicates,
check for primes, convert celsius to fahrenheit, download an image, make a timer, calculate a factorial, remove spaces, loop over a dict,
split a string, merge two lists, show a popup, change the colour, hide a div, validate emails, roll a dice, count vowels, swap two variables,
generate passwords, sum a column, join two tables, delete old rows, rename files, log in a user, resize an image, upper case a word""")
SNIPPETS = _lines("""print("hi", if x = 3: print(x), while true do print x, def f(x) return x, int x = "five";, let a = [1; 2; 3];,
console.log(hello, SELECT * FORM users, x == 5 ? yes no, for (int i = 0; i < 10; i++) {, return a + b }, import foo from bar,
var x = 5 var y, <div><p>hello</div>, print(x + "a"), list.append[3], arr[10] = 5, a => a * 2, fn main() { println("hi") },
SELECT name users WHERE id, print "hello", elif x > 3, foo(bar(, const x; x = 3, malloc(10), #include <stdio>, np.zeros(3 3)""")
SAYINGS = _lines("""good night, good morning, good evening, how are you, thank you, i love you, i am hungry, where is the train station, hello,
goodbye, please, my name is anna, the cat is black, excuse me, cheers, happy birthday, see you tomorrow, i miss you, what is your name,
yes, no, sorry, water, house, dog, friend, freedom, love, one two three, merry christmas, i do not understand, the weather is nice,
where is the toilet, a beer please, welcome, good luck, my friend, the book is on the table, i am tired, you are beautiful, have a nice day""")
ALIEN = _lines("""bonjour, danke, gracias, ciao, katze, perro, chat, casa, liebe, amour, schadenfreude, arigato, konnichiwa, namaste, salud,
bitte, merci, hola, guten tag, buongiorno, tschuss, maison, libro, baum, haus, wasser, agua, eau, obrigado, spasibo, privet, sayonara, hygge,
c'est la vie, carpe diem, mi casa es su casa, wunderbar, madre, vater, schule, fenster, manzana, fromage, strasse, sol, luna, neko, mond, vogel""")
PLACES = _lines("beach, forest, mountains, city, garden, school, office, kitchen, cafe, shop, bakery, hotel, church, castle, pharmacy, restaurant, dentist")
SEASONS = ["winter", "summer", "spring", "autumn"]
COMPLAINTS = _lines("""the sink leaks, i am sick today, the lift is broken, i will be late, we need more time, the order never came,
i quit, the wifi is down, my flight was cancelled, the rent is too high, i cannot come tomorrow, the neighbours are loud, i want a raise,
the invoice is wrong, we move out in may, the window does not close, i lost my key, the meeting is moved, i want my money back""")
WRONG = _lines("""i has a dog, she dont like it, we was at home yesterday, he go to work every day, their are many cats, i seen him last week,
me want to eats, you is late, the childs plays outside, yesterday i goes home, it dont works, him are my friend, i is tired, they was happy,
a apple fell down, she have two cat, i will went there, where you was, he didnt came, my brother like fish""")
_WHO = _lines("the city, our school, the company, the council, a group of students, the farmers, the museum, my team, the bank, the airline, "
              "the hospital, scientists, the library, the government, our club, the store, researchers, the zoo, Mr Smith, the mayor")
_DID = _lines("opened a new park, closed two offices, sold more bread than last year, found a new kind of bird, lost the final, hired ten people, "
              "built a bridge over the river, planted trees, raised the prices, moved to another street, cancelled the concert, won a prize, "
              "repaired the old clock, changed the rules, asked for help, started a new project, banned cars from the centre, bought new buses, "
              "tested a drug, stopped the work, lowered the rent, planned a festival")
_MORE = _lines("it cost three million, people are angry, nobody knows why, the work took two years, many came to see it, critics say it is too late, "
               "the weather was bad, it will open again in may, tickets are sold out, the old plan was dropped, experts are not sure, "
               "it is the first of its kind, neighbours complain about noise, the results come next week, half of them left, parking is a problem, "
               "sales fell by ten percent, volunteers helped, the date is not fixed, it rained the whole day, the money is gone, all are welcome")
_GERUNDS = _lines("because of the rain, last week, on Friday, in spring, after a long debate, for the first time, in March, without notice")


def sentence(rng):
    text = f"{rng.choice(_WHO)} {rng.choice(_DID)}"
    if rng.random() < 0.5:
        text += " " + rng.choice(_GERUNDS)
    return text[0].upper() + text[1:]


def passage(rng):
    """Returns two to four sentences of a made-up report."""
    parts = [sentence(rng) if rng.random() < 0.4 else rng.choice(_MORE) for _ in range(rng.randint(1, 3))]
    parts = [sentence(rng)] + parts
    return " ".join(p[0].upper() + p[1:] + "." for p in parts)


def _noun(rng):
    draw = rng.random()
    if draw < 0.12:
        return words.pseudo_word(rng)
    if draw < 0.5:
        return rng.choice(words._COPIED).lower()
    if draw < 0.65:
        return rng.choice(ODD_THINGS)
    return rng.choice(words.ANIMALS + words.OBJECTS + words.TREE_NOUNS)


def _name_of_somebody(rng):
    if rng.random() < 0.55:
        return rng.choice(PEOPLE)
    first = rng.choice(words.NAMES) if rng.random() < 0.7 else words.pseudo_word(rng).capitalize()
    last = rng.choice(words._COPIED).capitalize() if rng.random() < 0.5 else words.pseudo_word(rng).capitalize()
    return f"{first} {last}"


def _country(rng):
    return words.pseudo_word(rng).capitalize() + "ia" if rng.random() < 0.1 else rng.choice(COUNTRIES)


_FILLERS = {
    "proglang": lambda r: r.choice(PROGLANGS), "language": lambda r: r.choice(LANGUAGES), "country": _country, "noun": _noun,
    "person": _name_of_somebody, "brand": lambda r: r.choice(BRANDS), "oddthing": lambda r: r.choice(ODD_THINGS),
    "topic": lambda r: r.choice(TOPICS) if r.random() < 0.85 else _noun(r) + "s", "event": lambda r: r.choice(EVENTS),
    "title": lambda r: r.choice(TITLES), "invention": lambda r: r.choice(INVENTIONS), "task": lambda r: r.choice(TASKS),
    "snippet": lambda r: r.choice(SNIPPETS), "saying": lambda r: r.choice(SAYINGS), "alien": lambda r: r.choice(ALIEN),
    "place": lambda r: r.choice(PLACES), "season": lambda r: r.choice(SEASONS), "complaint": lambda r: r.choice(COMPLAINTS),
    "wrong": lambda r: r.choice(WRONG), "sentence": sentence, "passage": passage, "machine": lambda r: r.choice(words.MACHINES),
    "food": lambda r: r.choice(words.FOODS + words.MORE_FOODS), "animal": lambda r: r.choice(words.ANIMALS),
    "job": lambda r: r.choice(words.JOBS + words.MORE_JOBS), "city": lambda r: r.choice(words.CITIES),
    "WORD": lambda r: r.choice([str.upper, str.lower])(r.choice(words._COPIED + ["pwned", "banana", "yes master", "evil", "hahaha"])),
}
_SLOT = re.compile(r"\{(\w+)\}")


def fill(rng, text, more=()):
    """Returns the text with its slots filled; `more` maps further slots to functions of the generator."""
    extra = dict(more)
    for _ in range(4):
        filled = _SLOT.sub(lambda m: (extra.get(m.group(1)) or _FILLERS[m.group(1)])(rng), text)
        if filled == text:
            break
        text = filled
    return text
