"""The codebooks of IQ1, IQ2 and IQ3: small lattices of 4 or 8 magnitudes, which blocks point into.

A codebook is ascending as numbers whose digits are its levels, so that the gaps between these say all of it.

Source: gguf.quants of the PyPI package ``gguf``
"""

from __future__ import annotations

from base64 import b85decode
from zlib import decompress

import numpy as np


def _grid(levels: tuple[int, ...], each: int, width: int, gaps: str) -> np.ndarray:
    """uint8 (entries, each): digits of ``width`` bits, the first one lowest, each the number of a level."""
    numbers = np.cumsum(np.frombuffer(decompress(b85decode(gaps)), "<u2").astype(np.int64))
    digits = numbers[:, None] >> width * np.arange(each) & (1 << width) - 1
    return np.array(levels, np.uint8)[digits]


# IQ1 has -1, 0 and 1: one more here.
GRIDS = {
    "iq1_s": _grid(
        (0, 1, 2), 8, 2,
        "c-oCujc(&M3>IZ6c4}XLuysxoU(*5|+U*W|o!*)NJz$6K)~(nx?9InN(UP6)h9ZqEQ55-+{Kz=xU4?(%)h@UezZdw~xQ^G(@JU"
        "u$+k0}LyA?jQZg3HwmiURNgVw!!Z|8Tj^Q61Mx9ECZp_>E#m$%<RP7Wy5q0|Z9@{ynSd?VnVNc6ZH@eJsC#X7{B-kqaP@hk2Ai"
        "P8`F-KkWAt7QAY)<(Sfkgf3`3Oha1qK*M20B@6(2gRm4>U)E-8?$uWeTk6itoUw0mb5>pbYL8O=B;2qC>DUL361Es?vyoE?#&{"
        ")&@=RYf}gELYY%i|tB5vueuMV`$8^L|&JG;!VCdIs=dYFt^O(q5o7o7NWY6~i%jQu9MyJZ+pDc=Qot>%GR<gXZ^8>EZ`x#1qg~"
        "*we@Qc}9-ZJ3=GsUYH0dv`#*P}g=v2FOB_DIub_YTqa?s^iPlw%RKy~I2x1eY=^rn@QAI<_QgtP*Nllw5Fx_k82DiX-n0v%MXh"
        "X_jt_sCr(J8_A+C_)OOIMJ|f$t;OGK<x`AWe(SV;TaLztGwsB^9IP-xJbC_uem`@}$lF`Jx3d_D$E0~TIW>BGpkgnjmha3{vH2"
        "JFG%~Nr4dP|WuuAi#&f?!%K1&6OHQ;`;N*d6oirFi=8{ECX+WH>RI-h83HG{k&T${GWeR43XrO3QFzNai7vz}J24&<!Z{K#C}W"
        ">FI!PJ9SjIfBs@$_fLEU(e9-N{hKzD>}=fcD&|d;5=Dqeu&JPt*;A)@|saYhI`WZhOzM$c|!67;TUrsisnNs{G~J3`ki=wUoe$"
        "eK|V;VOH`AMzBoaMh|WA7k6M*t%k?B?WYdk-Gof+fJ_DEziCZZ6Q5YtVEEK5qcp}e7i96YmBMV1aw)Af9?ey+mV>I0v^X*aB{D"
        "gg{x>v@~Q1mKabdW2}16d1PpJ`<WBl3jp5-UBgC-F$^kQ_}ce5jr}&bx0%eZ^JNWOsDPPyzWqaxVa735lghEUm7WW<S~aC63J7"
        "S@tFVT)9i?!x<BGj7g<^EU4YIw#K^~n-jkB|9j2^>5z^4QRkPx02Eunt<R>uX_wuqoHr~IPwcZUTVX9uIjG7q;=RT{*eoFkJaK"
        "Pm`7Y3^&7<cTPr|_~e|n8+!0&*bNYpMgk`41tjeU2gNF)~OHD`Us3R15tzNOU~42+z2KdHv3Yy;f;Px;=?JzY*aO>6z4J31eF%"
        "du!&=b4MWMzlRTE8c7Wo9liBnKIvTZAffB&~$@nEcI0Kf7$~^uFGeXQ=W}STV=ut%8!Bj>Jl;8&-!<7b1!v<{s0cC^W<}vw>rG"
        "#NFJM&N&e@#&e(CpfbEUeAt>uNMHedPyxKA&+KihRddpF+vVOKVzqS*sDxUbg`_6rW)R|~~jZY;HiGI<YI&#DPVmjkC%rNjjyU"
        "<D_n=|~vYWh(tfvR|sF;nX8<ky;KN#ITbP8ewq7n%c6ry9y2s)QSxtDXxi#@Ts&fKk%4*xPR|sjp|8g3b+9;qg1`h_CTjCJ?*L"
        "^GkSHto^7+COd9fj^6)Z=>>O;Z%vASL#MyL!t9sD;QpE9LOBt1#e60`;LV~D*y~_yNa){j{v`H9hJ=!7?*GI0Go8{0eoE|hkGr"
        "q#kd}EZ{R?w{Q3U",
    ),
    "iq2_xxs": _grid(
        (8, 25, 43), 8, 2,
        "c-l>o%_~G<6vlt=9q$<5%`|34k?SKV7I(u;lA4l4*+^L^!%A!<ikg~|KVnKTNhv9mg%S%=w)R%GQp&<c@!UIC>2}Y#=bYy}=Q-"
        "zsLqv~5t!$%wRBt-?j!`Gyt~f@9#UN)HV4Nf?%DNON89y5jaZ%yA0$h@XFz%yAd~vol!Belxg0Uf{Eu1+_kx}kR@NTPoox=47^"
        "VWjt9`#~67W<9yW2<VGGE*Fo;w@0&k*B1}K9`(ZU-bwbVsbc<y_Ww8aVbuP?P1Vtn+%&=nA_I>8^>tYyy_<FQj%A{mBtowsw5}"
        "}8Vb_Cqv!?WRCz5o%!{Lo2c}uKK3`0G7i5c!vCO+PIJ(6bvz(c@^3&>n;@kTD{n}_wy^~aQqXr>2xO48({w`Um*wxMYdFI3X{R"
        "@{06U?xsy33JqOq2Pv{%zY?Qg)R`U96jKnv54Y<TX0O5PO=RadI_R`~ssbK5z",
    ),
    "iq2_xs": _grid(
        (8, 25, 43), 8, 2,
        "c-noE!An$O6vcnv8=k#nm>L<!j4_`kgAv8U!9{H(6H+7>fsG^TI4-n^Bnq5}S>(QT5JHG8T86tI2v@CI)SuwmUCVIc`M!BmGsB"
        "Dw@6EmU-Fxo2=U(tg=;v|4y%YMcM+V#ci+XZRwy!UhwwyXjb5@eTAtiay5*=}GpPTejHRpHolrz#5Bh4_o&dPFC->0dWW;V7<E"
        "@m=LD6FFMBJL?tRU}|r(TaaQi==V}y0VDKDEcgB8wqvav}akxGQ!-AD~{w%^3_<+<F>pB-YBcW2}>0H)+ri&LZ`a50*2UQlr_y"
        "&awvmhc%-?~Jm87EcPyJg2wC+hNSz<be9aX$=ux!V-+khC?K;owi$R$>{{h?EwBE;mZJs;JPQT2i6uK+#&@@mkk>aCR7u*bcoc"
        "f(ED2kP{SL5-W86g!-;|4-?3&keTgaIF<z#Yma!!4oDsWPvc`=;hM7^N8Fx^7|2<e6pLWclm3lv(wj@{MB_EUW%b7Z3@{;uZhx"
        "JFT9d)qh?7HQA+js|j%pxuH9o(cWJ1i1)_sZPL}}wY!{IQ+|p*N-?*rZlR{VPV+~KRE^J+Q{gvTs`<iYZ;?;@WS)KL)Z_Ns%MO"
        "Ric_@8tY?R0D1{e8d3cS>GHfohw;jQcgJzLWC49CYy3j",
    ),
    "iq2_s": _grid(
        (8, 25, 43), 8, 2,
        "c-oy+&ubGw6#k}V8Z!(H9=dj8Nc>SnDurM{s)z><Lhx3Qv{G30AQf%NMGB>t2>u7sTh9e=dh;OUPxH&nY%;UEv&OQ_%+A|4-@N"
        "y|9}6sDna>g$W?trMC23*bbo(3LUPJO3R%mt#ryA6=nA+?$$3cLkh&<PQXpj|Fk%@Xcik5eR8=KxezNU<L*a>WUSFk9T-!}6|l"
        "zo(*7e1;)3yEP$&*Z%Tv4s(?^L-U7)VPlU4rP_+?Gm$oyi~2%@yPmqA8|<Ijdr$A*R80}|HouZ!*N<-xsOc@MHtgw>Eu}jR*EN"
        "hZx9mvkg-_Vc(iDZ;^W6iyL)tCpTfF{P@B6Qu3hYlV#Y1zSwf7l^D)Jx@OgfUTh5Yi_`(}sV1t+^YaxqyY}+-ppi3FijMPhA?D"
        "DMDCLaRk#Z~ick*rWIMxzQw`?!Y#VRJQhej|D|!6)}Nk#!YSUnf_~>6BiL#iFOHtRK%ZXd=qr75hh?Srgv&8F#TSZGQ;6(!Y61"
        "$&=;l6??IaSkfnQmz8>q?>G`u$!l!mkdk$gAzPax+s@J{bwcfRo@z$69Ct%gyN#LTXNk$)!aORR%px)gDsUGW*JsSJKX}Zu4_J"
        "|z^zGBpXwOj;F5OKZ@J7_<;U2$acu5{FL>}Fb^mah`b1{<nAMu*2iCw;()4mI?wkPeG*><EU;s7^U^(l75Z_&jme&G?mQX}D5!"
        "CTzHUl`O*2m",
    ),
    "iq3_xxs": _grid(
        (4, 12, 20, 28, 36, 44, 52, 62), 4, 3,
        "c-l>nT~C8R5JfK_-_RlyslnFP+N2s2qdxnlzBT^;f8&`cA%^TOJ9FmFos~kqn02LqJyot-zg?m!f03W1DrFO$dc>$gi58rRSC="
        "}d(+a}q(BqvNeP|$Rnmu$gYhO;Q3$*r##a`!pss|K8YI4=om1rDvVsFu{bSAU=r(|Ap-MeNqDU3c@=C_N>n!U!4&Gy3Dqq62+z"
        "<#@%L3i_vJ#0L?C^<*(R+DM8#K|Xn2a(`tq<c%|#9BcwU@Ll@xh?72KwWDKbtG$@dvcMhzteZXX#zDs*ld}ew3+74i2mZ($i^!"
        "+5L=WUsrf<es5d%W-d-TUNdsT#8DFt(@NE6|MD2}Qed!PKX%Cq",
    ),
    "iq3_s": _grid(
        (1, 3, 5, 7, 9, 11, 13, 15), 4, 3,
        "c-mD{Yfr;440PH&+9q9Bw!y|g0u5<`?-T$3pK-o8(@>SfcKkSBToH$_myV~y*-`cqB|z%UqH==P-~Bwj)Z(cnnXw1NIa(a=dir"
        "R#mT87GK=-sH)`*OlnWvXbO|6mpA`|q&+hD#6q|6K(S)nE7Za#`+|A4b~ReR7F%|8-r?NOr=t0mq??33~04avmSSg80MBUeb-S"
        "ejX-a&macxyY5>>HYc6Xn{?mhkq!$J1S=!ReiR%(iM%{x@(OiwTZbC@q1#fY<l$Dsz!8}v5&AP-km4~ShPmQKG1uTH*)ETJHzs"
        "7csfS3+2~m>GOA-HMY|=2dQ;!<L~erhHu6+71LsYrXypsf%$<o~g0{o=VeDqP*qhY;6F#jJtajv-MB-L-fjk7ffbvx67wnZTIG"
        ">Qw0a+o^Pe>~wkDM@N>BL-$veqm1Z&aQ~;8G?hR-NSqr$en7XR*mCxGnO9wL{b|JK5lDGkXC3EpolfGtfl#ty~tOzQK3F>Vaer"
        "-?Mxp=0-H5Wzb5RA;Yu7o3(#V`8;tlHppH7>ZAO?_X9|;@&~>@55W",
    ),
}  # fmt: skip
